package policies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
)

func configurationCommand(a *program.App) *cobra.Command {
	return command.Group("configuration", "Compare the configuration of replicas, and adopt a change of it",
		configurationStatusCommand(a), configurationAdoptCommand(a))
}

func configurationStatusCommand(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show whether a replica uses the agreed configuration, and pending changes",
		Long: `Asks the replica that answers at --registry how its environments.yaml, public keys,
access.yaml and promoter's key stand to those that all replicas agreed on. agreed: they
are the same. pending: its files changed, and wait for configuration adopt. unreadable: its
files have a mistake, and the agreed configuration is still in force. differs: it has other files,
and changes and resolves nothing.`,
		Example: "  mlpromote configuration status --registry http://127.0.0.1:5080",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.Registry == "" {
				return registry.Errorf(registry.CodeInvalid, "configuration status asks a service: want --registry URL")
			}
			return a.With(c.Context(), func(i *wiring.Instance) error {
				status, err := i.Configuration.Configuration(c.Context())
				if err != nil {
					return err
				}
				return a.UI.Result(configurationText(status), status)
			})
		},
	}
}

func configurationText(s history.ConfigurationStatus) string {
	rows := [][]string{{"PART", "AGREED", "IN FORCE", "ON DISK"}}
	inForce, onDisk := s.InForce.Parts(), s.OnDisk.Parts()
	for i, p := range s.Agreed.Parts() {
		rows = append(rows, []string{p.Name, ui.Dash(ui.Short(p.Digest)), ui.Dash(ui.Short(inForce[i].Digest)), ui.Dash(ui.Short(onDisk[i].Digest))})
	}
	lines := append([]string{string(s.State), ui.Table(rows)}, s.Changes...)
	if s.Problem != "" {
		lines = append(lines, s.Problem)
	}
	return strings.Join(lines, "\n")
}

func configurationAdoptCommand(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:   "adopt",
		Short: "Make the files here the configuration of all replicas",
		Long: `Replicas on one PostgreSQL database must have the same environments.yaml, public keys,
access.yaml and promoter's key. A change of them waits until it is adopted: with --database,
the configuration of the files here; with --registry, of the files of the service, which takes an
administrator. Replicas that have other files then change and resolve nothing until they
get them. A catalog in a file needs no adopting: its service, and the verbs on its
directory, take a change by themselves.

stdout: the agreed configuration.`,
		Example: "  mlpromote configuration adopt",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.Registry != "" {
				return a.With(c.Context(), func(i *wiring.Instance) error { return adoptThere(c.Context(), a, i) })
			}
			return adoptHere(c.Context(), a)
		},
	}
}

// adoptHere records the files of the data directory as those that are agreed on.
func adoptHere(ctx context.Context, a *program.App) (err error) {
	if _, err := os.Stat(a.Data); errors.Is(err, fs.ErrNotExist) {
		return wiring.NoData(a.Data)
	}
	own, err := ownConfiguration(ctx, a)
	if err != nil {
		return err
	}
	db, err := a.At().OpenDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	agreed, err := db.Agreed(ctx, history.Configuration{Environments: own.Environments})
	if err != nil {
		return err
	}
	nothing := digest.FromBytes(nil)
	switch {
	case agreed.Access == "": // no service was here yet: it records by itself what it has
		own = history.Configuration{Environments: own.Environments}
	case own.Access == nothing && agreed.Access != nothing:
		return registry.WithHint(
			registry.Errorf(registry.CodeInvalid, "the services of this catalog have an %s, and %s has none", config.AccessFile, a.At().PolicyFolder()),
			"put their %s here; to agree on none, take it from a service and adopt with --registry URL", config.AccessFile)
	}
	differs := own.Differs(agreed)
	if len(differs) == 0 {
		a.UI.Note("nothing to do: the configuration here is agreed on")
		return adopted(a, agreed)
	}
	change, err := storage.Adopt(agreed, own, "adopted by whoever has the database: "+strings.Join(differs, ", "), clock.Now())
	if err != nil {
		return err
	}
	if _, err := db.Apply(ctx, change); err != nil {
		return err
	}
	a.UI.Note("adopted: %s", strings.Join(differs, ", "))
	return adopted(a, own.Over(agreed))
}

// adoptThere lets a service adopt what its files say, after showing what that changes.
func adoptThere(ctx context.Context, a *program.App, i *wiring.Instance) error {
	status, err := i.Configuration.Configuration(ctx)
	if err != nil {
		return err
	}
	if status.Problem != "" {
		return registry.Errorf(registry.CodeInvalid, "the files of the service cannot be used: %s", status.Problem)
	}
	for _, change := range status.Changes {
		a.UI.Note("%s", change)
	}
	if len(status.OnDisk.Differs(status.Agreed)) == 0 {
		a.UI.Note("nothing to do: the configuration of the service is agreed on")
		return adopted(a, status.Agreed)
	}
	if status, err = i.Configuration.AdoptConfiguration(ctx, status.OnDisk); err != nil {
		return err
	}
	return adopted(a, status.Agreed)
}

// ownConfiguration is the configuration of the files here, with the promoter's key where
// there is one.
func ownConfiguration(ctx context.Context, a *program.App) (history.Configuration, error) {
	files, err := a.At().SignedFiles(ctx, a.At().Keyring())
	if err != nil && !registry.HasCode(err, registry.CodeUnavailable) {
		return history.Configuration{}, err
	}
	s, err := files.Read()
	return s.Configuration, err
}

func adopted(a *program.App, agreed history.Configuration) error {
	var lines []string
	for _, p := range agreed.Parts() {
		if p.Digest != "" {
			lines = append(lines, fmt.Sprintf("%-12s  %s", p.Name, p.Digest))
		}
	}
	return a.UI.Result(strings.Join(lines, "\n"), agreed)
}
