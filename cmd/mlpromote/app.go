package main

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// app is one run of the program: where it reads and writes, and its global flags.
type app struct {
	ui      *ui.UI
	getenv  func(string) string
	stdin   io.Reader
	version string

	data       string // --data
	policyDir  string // --policy-dir; empty: the data directory
	keys       string // --keys
	registry   string // --registry
	database   string // --database
	toolchains string // --toolchains
	storage    string // --storage
	tlsCA      string // --tls-ca
	output     string // --output
	verbose    bool   // --verbose
	takeOver   bool   // --take-over of restore

	subject string // what the verb is about, for its error; empty: its first argument

}

// at says where the registry is that the flags name.
func (a *app) at() wiring.Location {
	return wiring.Location{
		Data: a.data, PolicyDir: a.policyDir, Keys: a.keys, Registry: a.registry, Database: a.database, Storage: a.storage, TLSCA: a.tlsCA,
		TakeOver: a.takeOver, Version: a.version, Getenv: a.getenv, Note: a.ui.Note, Hashing: a.ui.Hashing,
	}
}

// defaultData is the data directory where neither --data nor MLPROMOTE_DATA says otherwise.
const defaultData = wiring.DefaultData

// main runs a command line and gives the exit code that docs/reference/exit-codes.md names.
func (a *app) main(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	if serving.AsksForJSONLog(args, a.getenv) {
		serving.LogAs(a.ui, "json")
	}
	a.ui.JSON = ui.AsksForJSON(args) // before the verb is known, which may be a mistake
	ran, err := root.ExecuteContextC(ctx)
	if errors.Is(err, context.Canceled) {
		err = registry.Errorf(registry.CodeUnavailable, "interrupted; nothing is half done, run it again")
	}
	a.ui.Close()
	if a.subject == "" {
		a.subject = ran.Flags().Arg(0)
	}
	err = errors.Join(err, a.ui.Finish(err, a.subject))
	a.ui.Fail(err)
	return registry.ExitCode(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mlpromote",
		Short: "Build, verify, sign and promote machine-learning engines",
		Long: `mlpromote builds each engine of a model once, proves that it computes what the
reference computes, signs what was built and what was proven, and promotes the
identical bytes from staging to prod.

  mlpromote init model.onnx     write mlpromote.yaml
  mlpromote build               make the engines, put them into staging
  mlpromote verify              prove them on this machine
  mlpromote promote             move the proven release to prod
  mlpromote resolve MODEL --env prod
  mlpromote pull MODEL --env prod -o DIR`,
		Version:                    a.version,
		Args:                       cobra.ArbitraryArgs,
		RunE:                       unknown,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		PersistentPreRunE:          func(*cobra.Command, []string) error { return a.configure() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.toolchains, "toolchains", "", "folder of manifests of compilers that are not ours (default MLPROMOTE_TOOLCHAINS)")
	flags.StringVar(&a.data, "data", "", "data directory (default MLPROMOTE_DATA, else "+defaultData+")")
	flags.StringVar(&a.policyDir, "policy-dir", "", "folder of environments.yaml and access.yaml (default MLPROMOTE_POLICY_DIR, else the data directory)")
	flags.StringVar(&a.registry, "registry", "", "URL of a service to work against (default MLPROMOTE_REGISTRY, else the data directory)")
	flags.StringVar(&a.tlsCA, "tls-ca", "", "PEM file of a CA to trust, for a service with a certificate of a private one (default MLPROMOTE_CA)")
	flags.StringVar(&a.storage, "storage", "", "s3://BUCKET/PREFIX that has the data directory's content (default MLPROMOTE_STORAGE, else the directory)")
	flags.StringVar(&a.database, "database", "", "postgres:// URL of the data directory's catalog (default MLPROMOTE_DATABASE, else a file in the directory)")
	flags.StringVar(&a.keys, "keys", "", "folder of signing keys (default MLPROMOTE_KEYS, else DATA/keys)")
	flags.StringVar(&a.output, "output", "text", "text or json")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "say more on stderr")
	root.SetOut(a.ui.Stdout)
	root.SetErr(a.ui.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(c, err)
	})
	root.AddCommand(
		a.initCommand(), a.schemaCommand(), a.buildCommand(), a.verifyCommand(), a.promoteCommand(), a.resolveCommand(), a.pullCommand(),
		a.rollbackCommand(), a.holdCommand(), a.quarantineCommand(), a.planCommand(), a.tuneCommand(), a.inspectCommand(), a.evidenceCommand(), a.listCommand(), a.trustCommand(),
		a.environmentsCommand(), a.configurationCommand(), a.policyCommand(), a.nodeCommand(), a.nodeTypeCommand(), a.toolchainCommand(), a.cacheCommand(), a.keyCommand(), a.historyCommand(), a.reindexCommand(),
		a.gcCommand(), a.scrubCommand(), a.backupCommand(), a.restoreCommand(), a.serveCommand(), a.healthCommand(), a.versionCommand(), a.tokenCommand(), a.driverCommand(), a.referenceCommand(),
	)
	return root
}

func (a *app) configure() error {
	if err := a.readSecretFiles(); err != nil {
		return err
	}
	if a.output != "text" && a.output != "json" {
		return registry.Errorf(registry.CodeInvalid, "--output %q: want text or json", a.output)
	}
	if a.toolchains == "" {
		a.toolchains = a.getenv("MLPROMOTE_TOOLCHAINS")
	}
	if a.data == "" {
		a.data = a.getenv("MLPROMOTE_DATA")
	}
	if a.data == "" {
		a.data = defaultData
	}
	if a.policyDir == "" {
		a.policyDir = a.getenv("MLPROMOTE_POLICY_DIR")
	}
	if a.registry == "" {
		a.registry = a.getenv("MLPROMOTE_REGISTRY")
	}
	if a.keys == "" {
		a.keys = a.getenv("MLPROMOTE_KEYS")
	}
	if a.tlsCA == "" {
		a.tlsCA = a.getenv("MLPROMOTE_CA")
	}
	a.ui.JSON, a.ui.Verbose = a.output == "json", a.verbose
	if err := a.configureStorage(); err != nil {
		return err
	}
	return a.configureDatabase()
}

// usage gives a mistake on the command line its code, and says where help is.
func usage(c *cobra.Command, err error) error {
	return registry.WithHint(registry.Errorf(registry.CodeInvalid, "%s: %s", c.CommandPath(), err.Error()), "%s --help", c.CommandPath())
}

// exactly refuses a wrong number of arguments as bad usage, naming what is wanted.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usage(c, errors.New("want "+wanted(names)))
		}
		return nil
	}
}

// atMost lets the last argument be left out.
func atMost(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage(c, errors.New("want at most one argument: "+name))
		}
		return nil
	}
}

func wanted(names []string) string {
	if len(names) == 0 {
		return "no arguments"
	}
	return strings.Join(names, " ")
}

// group is a command that only holds others.
func group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: unknown}
	c.AddCommand(children...)
	return c
}

// unknown is what a command that only holds others does by itself: help, or the name
// of the command that was probably meant.
func unknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	text := "unknown command " + args[0]
	if meant := c.SuggestionsFor(args[0]); len(meant) > 0 {
		text += " (did you mean " + strings.Join(meant, " or ") + "?)"
	}
	return usage(c, errors.New(text))
}

// configureStorage takes the storage from the environment where no flag names one.
func (a *app) configureStorage() error {
	if a.storage != "" && a.registry != "" {
		return registry.Errorf(registry.CodeInvalid, "--storage is for a data directory, and the service at %s has its own: want one of the two", a.registry)
	}
	if a.storage == "" {
		a.storage = a.getenv("MLPROMOTE_STORAGE")
	}
	return nil
}

// configureDatabase takes the database from the environment where no flag names one.
func (a *app) configureDatabase() error {
	if a.database == "" {
		a.database = a.getenv("MLPROMOTE_DATABASE")
		return nil
	}
	if a.registry != "" {
		return registry.Errorf(registry.CodeInvalid, "--database is for a data directory, and the service at %s has its own: want one of the two", a.registry)
	}
	if u, err := url.Parse(a.database); err == nil {
		if _, told := u.User.Password(); told {
			a.ui.Note("other users of this machine can read the password in --database; MLPROMOTE_DATABASE, PGPASSWORD and ~/.pgpass keep it to yourself")
		}
	}
	return nil
}
