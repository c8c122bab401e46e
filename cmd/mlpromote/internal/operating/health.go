package operating

import (
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
)

func healthCommand(a *program.App) *cobra.Command {
	var config serving.Config
	settings := Settings(a, &config)
	c := &cobra.Command{
		Use:   "health",
		Short: "Check whether the service on this machine is ready",
		Long: `Asks /readyz of the service that runs with the same settings (flags, MLPROMOTE_* variables,
DATA/serve.yaml), on this machine: for the health check of a container. Exit code 0: it can
answer requests.`,
		Example: "  mlpromote health\n  mlpromote health --listen 127.0.0.1:5080",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := serving.Resolve(c, settings, a.Getenv, a.Getenv("MLPROMOTE_CONFIG")); err != nil {
				return err
			}
			url, err := serving.AskReady(c.Context(), config.ListenConfig)
			if err != nil {
				return err
			}
			return a.UI.Result("ready", ready{url})
		},
	}
	serving.DefineSettings(c, settings)
	for _, s := range settings {
		if !s.Shared && s.Name != "listen" && s.Name != "tls-cert" {
			c.Flag(s.Name).Hidden = true // read so that one configuration serves both verbs
		}
	}
	return c
}

// ready is where a service said that it can answer requests.
type ready struct {
	Ready string `json:"ready"`
}
