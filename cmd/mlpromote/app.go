package main

import (
	"cmp"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
)

// app is one run of the program: where it reads and writes, and its global flags.
type app struct {
	ui      *ui.UI
	getenv  func(string) string
	stdin   io.Reader
	version string

	connect.Flags
	keys       string // --keys
	database   string // --database
	toolchains string // --toolchains
	storage    string // --storage
	takeOver   bool   // --take-over of restore
	output     command.Output

	subject string // what the verb is about, for its error; empty: its first argument
}

// at says where the registry is that the flags name.
func (a *app) at() wiring.Location {
	return wiring.Location{
		Data: a.Data, PolicyDir: a.PolicyDir, Keys: a.keys, Registry: a.Registry, Database: a.database, Storage: a.storage, TLSCA: a.TLSCA,
		TakeOver: a.takeOver, Version: a.version, Getenv: a.getenv, Note: a.ui.Note, Hashing: a.ui.Hashing,
	}
}

// addFlags adds the flags that all verbs have.
func (a *app) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	a.Flags.Add(root, ", else the data directory")
	flags.StringVar(&a.toolchains, "toolchains", "", "folder of manifests of compilers that are not ours (default MLPROMOTE_TOOLCHAINS)")
	flags.StringVar(&a.storage, "storage", "",
		"s3://BUCKET/PREFIX that has the data directory's content (default MLPROMOTE_STORAGE, else the directory)")
	flags.StringVar(&a.database, "database", "",
		"postgres:// URL of the data directory's catalog (default MLPROMOTE_DATABASE, else a file in the directory)")
	flags.StringVar(&a.keys, "keys", "", "folder of signing keys (default MLPROMOTE_KEYS, else DATA/keys)")
}

// secretVariables are the variables that a file can hold instead, as NAME_FILE names it.
func secretVariables() []string {
	return []string{"COSIGN_PASSWORD", "MLPROMOTE_CI_TOKEN", "MLPROMOTE_DATABASE", "MLPROMOTE_STORAGE", "MLPROMOTE_TOKEN"}
}

// configure completes the flags from the environment, once the command line was read.
func (a *app) configure(c *cobra.Command) error {
	getenv, err := command.SecretFiles(a.getenv, secretVariables()...)
	if err != nil {
		return err
	}
	a.getenv = getenv
	if err := a.output.Check(c); err != nil {
		return err
	}
	if err := a.Flags.Default(a.getenv); err != nil {
		return err
	}
	a.toolchains = cmp.Or(a.toolchains, a.getenv("MLPROMOTE_TOOLCHAINS"))
	a.keys = cmp.Or(a.keys, a.getenv("MLPROMOTE_KEYS"))
	a.ui.JSON, a.ui.Verbose = a.output.Format == "json", a.output.Verbose
	if err := a.configureStorage(); err != nil {
		return err
	}
	return a.configureDatabase()
}

// configureStorage takes the storage from the environment where no flag names one.
func (a *app) configureStorage() error {
	if a.storage != "" && a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid,
			"--storage is for a data directory, and the service at %s has its own: want one of the two", a.Registry)
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
	if a.Registry != "" {
		return registry.Errorf(registry.CodeInvalid,
			"--database is for a data directory, and the service at %s has its own: want one of the two", a.Registry)
	}
	if u, err := url.Parse(a.database); err == nil {
		if _, told := u.User.Password(); told {
			a.ui.Note("other users of this machine can read the password in --database; MLPROMOTE_DATABASE, PGPASSWORD and ~/.pgpass keep it to yourself")
		}
	}
	return nil
}
