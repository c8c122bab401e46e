package operating

import (
	"context"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/registry"
)

func serveCommand(a *program.App) *cobra.Command {
	var config serving.Config
	var file string
	var printConfig bool
	settings := Settings(a, &config)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the registry service",
		Long: `Serves the OCI endpoint (/v2/), the REST API (/api/v1) and /healthz and /readyz. Protected
environments are written by promotions alone. Where others can reach it, and wherever there
is a token or DATA/access.yaml, whoever comes is asked for a token. With
--database there may be several services on one data directory, and verbs at the same time;
otherwise one has it to itself. stdout: the URL.

Settings without a flag come from the environment (--gc-interval is MLPROMOTE_GC_INTERVAL),
then in the file of --config, or serve.yaml in the data directory (gc_interval).`,
		Example: `  mlpromote serve --data /srv/mlpromote
  mlpromote serve --data /srv/mlpromote --listen :5443 --tls-cert tls.crt --tls-key tls.key --url https://registry.example.com:5443
  mlpromote serve --print-config`,
		Args: command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.Registry != "" {
				return registry.Errorf(registry.CodeInvalid, "serve works on a data directory, not on --registry %s", a.Registry)
			}
			if file == "" {
				file = a.Getenv("MLPROMOTE_CONFIG")
			}
			all, err := serving.Resolve(c, settings, a.Getenv, file)
			if err != nil {
				return err
			}
			serving.LogAs(a.UI, config.LogFormat)
			if err := config.Check(); err != nil {
				return err
			}
			if printConfig {
				return a.UI.Result(serving.EffectiveText(all), all)
			}
			return serve(c.Context(), a, config)
		},
	}
	c.Flags().StringVar(&file, "config", "", "file of settings (default MLPROMOTE_CONFIG, else DATA/serve.yaml if it is there)")
	c.Flags().BoolVar(&printConfig, "print-config", false, "print every setting with its source, and serve nothing")
	serving.DefineSettings(c, settings)
	return c
}

// servedAt is where a service answers.
type servedAt struct {
	URL string `json:"url"`
}

func serve(ctx context.Context, a *program.App, config serving.Config) error {
	if a.Output.Verbose {
		config.LogLevel = "debug"
	}
	logger, err := serving.NewLogger(a.UI, config.LogFormat, config.LogLevel)
	if err != nil {
		return err
	}
	return serving.Run(ctx, a.At(), config, logger, func(url string) error { return a.UI.Line(url, servedAt{url}) })
}

// Settings is what can be set of a service, with the flags of all verbs among it.
func Settings(a *program.App, c *serving.Config) []serving.Setting {
	return serving.Settings(serving.SharedFlags{Data: &a.Data, Keys: &a.Keys, Database: &a.Database, Storage: &a.Storage, PolicyDir: &a.PolicyDir}, c)
}
