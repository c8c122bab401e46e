package operating

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mlpromote.dev/mlpromote/cmd/internal/command"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/clock"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/serving"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/storage"
)

func tokenCommand(a *program.App) *cobra.Command {
	return command.Group("token", "Make and revoke the tokens that a service lets in",
		tokenCreateCommand(a), tokenListCommand(a), tokenRevokeCommand(a))
}

// withTokens runs f on the tokens of the service of --registry, which takes the right to
// administer it, or on those of the data directory, also while that is served: the
// database takes several processes, and a service sees at once what another one wrote.
func withTokens(ctx context.Context, a *program.App, f func(wiring.Tokens) error) error {
	if a.Registry != "" {
		return a.With(ctx, func(i *wiring.Instance) error { return f(i.Tokens) })
	}
	if _, err := os.Stat(a.Data); errors.Is(err, fs.ErrNotExist) {
		return wiring.NoData(a.Data)
	}
	db, err := a.At().OpenDatabase(ctx)
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// never is the lifetime of a token that does not expire.
const never = "never"

func tokenCreateCommand(a *program.App) *cobra.Command {
	var allow, environments, models, more []string
	var expires string
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token",
		Long: `Makes a token for the service that serves the data directory, also while it does, or for that
of --registry, where the secret is not sent. stdout: the token, which is shown this once and
kept nowhere. It allows each permission in each environment
for each model that is named:

  read        pull, resolve, list          verify      attach reports
  push        push, publish, sign          approve     attach approvals, quarantines
  promote     promote, roll back           attest      approve in the own name without a key
  administer  all of these, delete, make tokens

The first token closes a service on 127.0.0.1 that let in everybody: it refuses requests without
a token from then on.

In names, * stands for a part of a component, and a final /** for everything below. Other grants that it
allows elsewhere is a --grant.`,
		Example: `  mlpromote token create ci --allow read,push,verify --env staging --model 'vision/**' \
    --grant 'read:prod:vision/**' --expires 720h
  mlpromote token create admin --allow administer`,
		Args: command.Exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			lifetime, err := parseLifetime(expires)
			if err != nil {
				return err
			}
			all, err := grants(allow, environments, models, more)
			if err != nil {
				return err
			}
			made := clock.Now()
			token, text, err := serving.NewToken(args[0], all, made, end(made, lifetime))
			if err != nil {
				return err
			}
			if err := makeDirectoryForToken(a); err != nil {
				return err
			}
			first, err := keepToken(c.Context(), a, token)
			if err != nil {
				return err
			}
			if first {
				tellServiceCloses(a)
			}
			a.UI.Note("token %s may %s; it expires: %s", token.Name, describe(token.Grants), expiry(token))
			return a.UI.Result(text, newToken{token, text})
		},
	}
	c.Flags().StringSliceVar(&allow, "allow", nil, "permissions: "+permissionNames())
	c.Flags().StringSliceVar(&environments, "env", []string{"**"}, "in which environments")
	c.Flags().StringSliceVar(&models, "model", []string{"**"}, "for which models; sources are MODEL/sources")
	c.Flags().StringArrayVar(&more, "grant", nil, "more permissions, as PERMISSION[,PERMISSION]:ENVIRONMENT:MODEL; may be repeated")
	c.Flags().StringVar(&expires, "expires", "2160h", "how long it can be used, or never")
	return c
}

// makeDirectoryForToken makes the data directory where a first token comes before the first start of the service.
func makeDirectoryForToken(a *program.App) error {
	if a.Registry != "" {
		return nil
	}
	if _, err := os.Stat(a.Data); errors.Is(err, fs.ErrNotExist) {
		a.UI.Note("made the data directory %s: the token is for a service that serves it (another one: --data DIR, or --registry URL)", a.Data)
	}
	return a.At().Create()
}

// tellServiceCloses says what the first token changes for a service that let in everybody.
func tellServiceCloses(a *program.App) {
	a.UI.Note("this is the first token, and it closes the service: if that let in everybody (on 127.0.0.1), it now refuses " +
		"requests without a token, with 401 and exit code 7, and revoking this one does not open it again")
	a.UI.Note("give each client a token of its own: MLPROMOTE_TOKEN for mlpromote, docker login or oras login for OCI clients, " +
		"Authorization: Bearer TOKEN for REST")
}

// newToken is a token with its text, which is told once.
type newToken struct {
	storage.Token
	Text string `json:"token"`
}

// revokedToken is one that ends.
type revokedToken struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// keepToken keeps a token, and reports whether there never was another.
func keepToken(ctx context.Context, a *program.App, t storage.Token) (first bool, err error) {
	err = withTokens(ctx, a, func(tokens wiring.Tokens) error {
		err := tokens.CreateToken(ctx, t)
		if registry.CodeOf(err) == registry.CodeConflict { // of a name that stays taken
			return registry.WithExit(err, registry.ExitFailed)
		}
		if err != nil {
			return err
		}
		all, err := tokens.ListTokens(ctx)
		first = err == nil && len(all) == 1 // it is kept, so that its text must be shown even if this fails
		return nil
	})
	return first, err
}

func tokenListCommand(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List tokens with their permissions",
		Example: "  mlpromote token list",
		Args:    command.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return withTokens(c.Context(), a, func(tokens wiring.Tokens) error {
				all, err := tokens.ListTokens(c.Context())
				if err != nil {
					return err
				}
				slices.SortStableFunc(all, func(x, y storage.Token) int { return x.Created.Compare(y.Created) })
				rows := [][]string{{"ID", "NAME", "CREATED", "EXPIRES", "LAST USED", "STATE", "ALLOWS"}}
				for _, t := range all {
					rows = append(rows, []string{t.ID, t.Name, t.Created.Format(time.DateTime), expiry(t), lastUse(t), state(t), describe(t.Grants)})
				}
				return a.UI.Result(ui.Table(rows), program.Listed(all))
			})
		},
	}
}

func tokenRevokeCommand(a *program.App) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke NAME|ID",
		Short:   "Revoke a token",
		Example: "  mlpromote token revoke ci",
		Args:    command.Exactly("NAME|ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return withTokens(c.Context(), a, func(tokens wiring.Tokens) error {
				all, err := tokens.ListTokens(c.Context())
				if err != nil {
					return err
				}
				i := slices.IndexFunc(all, func(t storage.Token) bool {
					return t.ID == args[0] || t.Name == args[0] && t.Revoked.IsZero()
				})
				if i < 0 {
					return registry.WithHint(registry.Errorf(registry.CodeNotFound, "no token %q that is not revoked", args[0]), "mlpromote token list shows them")
				}
				if err := tokens.RevokeToken(c.Context(), all[i].ID, clock.Now()); err != nil {
					return err
				}
				return a.UI.Result(all[i].ID, revokedToken{all[i].ID, all[i].Name})
			})
		},
	}
}

// grants are all combinations of environments and models, and what is granted besides.
func grants(allow, environments, models, more []string) ([]storage.Grant, error) {
	var all []storage.Grant
	for _, e := range environments {
		for _, m := range models {
			if len(allow) > 0 || len(more) == 0 {
				all = append(all, storage.Grant{Permissions: permissions(allow), Environment: e, Model: m})
			}
		}
	}
	for _, text := range more {
		parts := strings.Split(text, ":")
		if len(parts) != 3 {
			return nil, registry.Errorf(registry.CodeInvalid,
				"--grant %q: want PERMISSION[,PERMISSION]:ENVIRONMENT:MODEL, for example read:prod:vision/**", text)
		}
		all = append(all, storage.Grant{Permissions: permissions(strings.Split(parts[0], ",")), Environment: parts[1], Model: parts[2]})
	}
	return all, nil
}

func permissions(names []string) []storage.Permission {
	var all []storage.Permission
	for _, name := range names {
		all = append(all, storage.Permission(name))
	}
	return all
}

func parseLifetime(text string) (time.Duration, error) {
	if text == never {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, registry.Errorf(registry.CodeInvalid, "--expires %q: want a time such as 720h, or never", text)
	}
	return d, nil
}

// end is when a token of a lifetime ends; 0 is never.
func end(made time.Time, lifetime time.Duration) time.Time {
	if lifetime == 0 {
		return time.Time{}
	}
	return made.Add(lifetime)
}

func expiry(t storage.Token) string {
	if t.Expires.IsZero() {
		return never
	}
	return t.Expires.UTC().Format(time.DateTime)
}

// lastUse is when a token last let somebody in.
func lastUse(t storage.Token) string {
	if t.LastUsed.IsZero() {
		return never
	}
	return t.LastUsed.UTC().Format(time.DateTime)
}

func state(t storage.Token) string {
	switch {
	case !t.Revoked.IsZero():
		return "revoked"
	case !serving.TokenUsable(t, clock.Now()):
		return "expired"
	default:
		return "in use"
	}
}

// describe says in words what grants allow.
func describe(grants []storage.Grant) string {
	var parts []string
	for _, g := range grants {
		var names []string
		for _, p := range g.Permissions {
			names = append(names, string(p))
		}
		parts = append(parts, fmt.Sprintf("%s %s in %s", strings.Join(names, ","), g.Model, g.Environment))
	}
	return strings.Join(parts, "; ")
}

func permissionNames() string {
	var names []string
	for _, p := range storage.Permissions() {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}
