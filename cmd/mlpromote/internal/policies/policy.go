package policies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/config"
	"mlpromote.dev/mlpromote/registry/service"
	"mlpromote.dev/mlpromote/registry/service/resolution"
)

func policyCommand(a *program.App) *cobra.Command {
	return command.Group("policy", "Try a policy before it is in force", policyReplayCommand(a))
}

func policyReplayCommand(a *program.App) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "replay",
		Short: "List the current heads that another environments.yaml would refuse",
		Long: `Judges the head of every model in every protected environment by another
environments.yaml, or by the present one with this version of the program, and changes
nothing. STANDING is whether nodes would still get it; ADMISSION is whether it would be
promoted again, which takes nothing away from them. Works while a service runs. Before an
upgrade, run the new program on a restored backup: it brings a catalog up to date.

stdout: a table, and the reasons. Exit code 4: a head would not be given to nodes any more.`,
		Example: "  mlpromote policy replay --file environments.new.yaml",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if a.Registry != "" {
				return registry.Errorf(registry.CodeInvalid,
					"policy replay works on a data directory, also while it is served, and not on --registry %s", a.Registry)
			}
			return replay(c.Context(), a, file)
		},
	}
	c.Flags().StringVar(&file, "file", "", "file to judge by as if it were environments.yaml: paths of keys start at the place of environments.yaml")
	return c
}

func replay(ctx context.Context, a *program.App, file string) (err error) {
	if _, err := os.Stat(a.Data); errors.Is(err, fs.ErrNotExist) {
		return wiring.NoData(a.Data)
	}
	present := a.At().Files()
	candidate := present
	candidate.File = file
	here, err := a.At().OpenCatalog(ctx) // without a lock: nothing is written
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, here.DB.Close()) }()
	today, err := serviceBy(a, here, present)
	if err != nil {
		return err
	}
	then, err := serviceBy(a, here, candidate)
	if err != nil {
		return err
	}
	heads, err := then.Replay(ctx, today)
	if err != nil {
		return err
	}
	if err := a.UI.Result(replayText(heads), program.Listed(heads)); err != nil {
		return err
	}
	return refusedHeads(heads)
}

// serviceBy judges by files, and is not asked to sign anything.
func serviceBy(a *program.App, here *wiring.Local, files config.Files) (*service.Service, error) {
	own, err := files.Read()
	if err != nil {
		return nil, err
	}
	i, err := a.At().InstanceBy(here, own, a.At().Keyring())
	if err != nil {
		return nil, err
	}
	return i.Service, nil
}

func replayText(heads []resolution.Replayed) string {
	rows := [][]string{{"ENVIRONMENT", "MODEL", "VERSION", "STANDING", "ADMISSION", "ENGINES LOST"}}
	var reasons strings.Builder
	for _, h := range heads {
		standing, admission := "ok", "ok"
		if h.Refused() {
			standing = "REFUSED"
		}
		if !h.Admission.Allowed() {
			admission = "refused"
		}
		rows = append(rows, []string{h.Head.Environment, h.Head.Model, h.Head.Version, standing, admission, fmt.Sprint(len(h.Lost))})
		for _, reason := range h.Reasons() {
			fmt.Fprintf(&reasons, "\n%s in %s: %s", h.Head.Model, h.Head.Environment, reason)
		}
	}
	return ui.Table(rows) + reasons.String()
}

// refusedHeads is the error of a replay that found heads which nodes would not get any more.
func refusedHeads(heads []resolution.Replayed) error {
	n := 0
	for _, h := range heads {
		if h.Refused() {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return registry.Errorf(registry.CodePolicy, "nodes would no longer be given %d of %s", n, registry.Count(len(heads), "head"))
}
