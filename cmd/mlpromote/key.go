package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/signer"
	"mlpromote.dev/mlpromote/signer/keyfile"
)

// now is the time of the wall clock, for what is shown to people.
func now() time.Time { return time.Now() }

func (a *app) keyCommand() *cobra.Command {
	var role string
	generate := &cobra.Command{
		Use:   "generate",
		Short: "Make a signing key that cosign reads too",
		Long: `Writes NAME.key, encrypted with COSIGN_PASSWORD (empty allowed), and NAME.pub into the
folder of keys. NAME is the role, or local for a key that plays every role. Trust in it is
given in environments.yaml.`,
		Example: "  mlpromote key generate --role builder",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			name := signer.LocalKey
			if role != "" {
				if !slices.Contains(registry.Roles(), registry.Role(role)) {
					return registry.Errorf(registry.CodeInvalid, "--role %q: want one of %v", role, registry.Roles())
				}
				name = role
			}
			public, err := keyfile.Generate(a.keyDir(), name, a.password())
			if err != nil {
				return err
			}
			id, err := signer.KeyID(public)
			if err != nil {
				return err
			}
			path := filepath.Join(a.keyDir(), name+".pub")
			return a.ui.result(path, map[string]string{"public": path, "keyId": id})
		},
	}
	generate.Flags().StringVar(&role, "role", "", "builder, verifier, approver or promoter (default: one key for all)")
	return group("key", "Make signing keys", generate)
}

func (a *app) historyCommand() *cobra.Command {
	verify := &cobra.Command{
		Use:   "verify",
		Short: "Check that no row of the history was changed, removed or added",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c.Context(), func(i *instance) error {
				events, err := i.History(c.Context(), registry.HistoryQuery{})
				if err != nil {
					return err
				}
				var before registry.Event
				for _, e := range events {
					if i.host != "" && e.Seq > before.Seq+1 {
						return registry.Errorf(registry.CodePolicy, "history rows %d to %d are not shown: either this token may not read them, or they are gone; ask with one that may read everything", before.Seq+1, e.Seq-1)
					}
					if err := e.VerifyChain(before); err != nil {
						return err
					}
					before = e
				}
				return a.ui.result(fmt.Sprintf("%d rows, head %s", len(events), dash(string(before.Hash))),
					map[string]any{"rows": len(events), "head": before.Hash})
			})
		},
	}
	return group("history", "Check the history", verify, a.historyListCommand())
}

func (a *app) historyListCommand() *cobra.Command {
	var q registry.HistoryQuery
	c := &cobra.Command{
		Use:   "list",
		Short: "List what happened, oldest first",
		Args:  exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c.Context(), func(i *instance) error {
				events, err := i.History(c.Context(), q)
				if err != nil {
					return err
				}
				rows := [][]string{{"ROW", "TIME", "WHO", "WHAT", "ENVIRONMENT", "MODEL", "VERSION", "DETAIL"}}
				for _, e := range events {
					rows = append(rows, []string{fmt.Sprint(e.Seq), e.Time.UTC().Format(time.DateTime), dash(e.Principal), string(e.Kind), e.Environment, e.Model, e.Version, dash(detail(e))})
				}
				return a.ui.result(table(rows), listed(events))
			})
		},
	}
	c.Flags().StringVar(&q.Environment, "env", "", "only this environment")
	c.Flags().StringVar(&q.Model, "model", "", "only this model")
	return c
}

func detail(e registry.Event) string {
	if e.PredicateType != "" {
		return e.PredicateType
	}
	return e.Reason
}

func (a *app) reindexCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reindex",
		Short: "Rebuild what is derived from the manifests",
		Long: `Empties the tables that repeat what manifests say (who refers to whom, artifact types)
and fills them again from the stored bytes. Tags, heads, holds and history are facts and stay.`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c.Context(), func(i *instance) error {
				if i.local == nil {
					return registry.Errorf(registry.CodeInvalid, "reindex works on a data directory: stop the service, then --data DIR")
				}
				if err := i.local.db.ResetDerived(c.Context()); err != nil {
					return err
				}
				n, err := oci.Reindex(c.Context(), i.local.blobs, i.local.db)
				if err != nil {
					return err
				}
				return a.ui.result(fmt.Sprintf("%d manifests", n), map[string]int{"manifests": n})
			})
		},
	}
}
