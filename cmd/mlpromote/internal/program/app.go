// Package program is one run of mlpromote: its streams, the flags that all verbs have, and how a verb opens the registry and a
// pipeline that they name.
package program

import (
	"cmp"
	"context"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/suggest"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/toolchains"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// App is one run of the program: its streams and global flags.
type App struct {
	UI      *ui.UI
	Getenv  func(string) string
	Stdin   io.Reader
	Version string

	connect.Flags
	Keys      string // --keys
	Database  string // --database
	manifests string // --toolchains
	Storage   string // --storage
	TakeOver  bool   // --take-over of restore
	Output    command.Output

	Subject string // subject of the verb's errors; empty: its first argument
}

// At is the location of the registry that the flags name.
func (a *App) At() wiring.Location {
	return wiring.Location{
		Data: a.Data, PolicyDir: a.PolicyDir, Keys: a.Keys, Registry: a.Registry, Database: a.Database, Storage: a.Storage, TLSCA: a.TLSCA,
		TakeOver: a.TakeOver, Version: a.Version, Getenv: a.Getenv, Note: a.UI.Note, Hashing: a.UI.Hashing,
	}
}

// AddFlags adds the flags that all verbs have.
func (a *App) AddFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	a.Flags.Add(root, ", else the data directory")
	flags.StringVar(&a.manifests, "toolchains", "", "folder of manifests of compilers that are not ours (default MLPROMOTE_TOOLCHAINS)")
	flags.StringVar(&a.Storage, "storage", "",
		"s3://BUCKET/PREFIX that has the data directory's content (default MLPROMOTE_STORAGE, else the directory)")
	flags.StringVar(&a.Database, "database", "",
		"postgres:// URL of the data directory's catalog (default MLPROMOTE_DATABASE, else a file in the directory)")
	flags.StringVar(&a.Keys, "keys", "", "folder of signing keys (default MLPROMOTE_KEYS, else DATA/keys)")
}

// SecretVariables are the variables that a file can hold instead, as NAME_FILE names it.
func SecretVariables() []string {
	return []string{"COSIGN_PASSWORD", "MLPROMOTE_CI_TOKEN", "MLPROMOTE_DATABASE", "MLPROMOTE_STORAGE", "MLPROMOTE_TOKEN"}
}

// Configure completes the flags from the environment, once the command line was read.
func (a *App) Configure(c *cobra.Command) error {
	getenv, err := command.SecretFiles(a.Getenv, SecretVariables()...)
	if err != nil {
		return err
	}
	if a.Getenv, err = a.UserFile(getenv); err != nil {
		return err
	}
	if err := a.Output.Check(c); err != nil {
		return err
	}
	if err := a.Flags.Default(a.Getenv); err != nil {
		return err
	}
	a.manifests = cmp.Or(a.manifests, a.Getenv("MLPROMOTE_TOOLCHAINS"))
	a.Keys = cmp.Or(a.Keys, a.Getenv("MLPROMOTE_KEYS"))
	a.UI.JSON, a.UI.Verbose = a.Output.Format == "json", a.Output.Verbose
	if err := a.configureStorage(); err != nil {
		return err
	}
	return a.configureDatabase()
}

// configureStorage takes the storage from the environment where no flag names one.
func (a *App) configureStorage() error {
	if a.Storage != "" && a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid,
			"--storage is for a data directory, and the service at %s has its own: want one of the two", a.Registry)
	}
	if a.Storage == "" {
		a.Storage = a.Getenv("MLPROMOTE_STORAGE")
	}
	return nil
}

// configureDatabase takes the database from the environment where no flag names one.
func (a *App) configureDatabase() error {
	if a.Database == "" {
		a.Database = a.Getenv("MLPROMOTE_DATABASE")
		return nil
	}
	if a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid,
			"--database is for a data directory, and the service at %s has its own: want one of the two", a.Registry)
	}
	if u, err := url.Parse(a.Database); err == nil {
		if _, told := u.User.Password(); told {
			a.UI.Note("other users of this machine can read the password in --database; MLPROMOTE_DATABASE, PGPASSWORD and ~/.pgpass keep it to yourself")
		}
	}
	return nil
}

// With runs f on the registry that the flags name, and closes it. An error of f names what was probably meant.
func (a *App) With(ctx context.Context, f func(*wiring.Instance) error) error {
	return a.At().With(ctx, func(i *wiring.Instance) error {
		return suggest.Around(ctx, &i.Registry, func() error { return f(i) })
	})
}

// Toolchains returns the folders of toolchains.
func (a *App) Toolchains() toolchains.Config {
	return toolchains.Config{Manifests: a.manifests, Private: []string{a.Data, a.At().KeyDir()}, Getenv: a.Getenv, UI: a.UI}
}
