package web

import (
	"context"
	"fmt"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
	"mlpromote.dev/mlpromote/web/releases"
)

// action is something that a person decides on a page. Who may, and whether it is done, is decided by the registry; the
// page says beforehand what it knows of that.
type action struct {
	title      func(f form) string
	button     string
	permission storage.Permission
	person     bool // the service signs in the name of somebody who signed in
	asks       bool // for a reason
	may        bool // the reason may be empty
	replaces   bool // it is about the head that the reader saw
	holds      bool // it is about the hold that the reader saw
	release    bool // it is about the release that the form names
	// follows says what follows from it, and puts into the form what was left open, so that what is done is what the
	// page said. Its error is why it would be refused, or why that is not known.
	follows func(ctx context.Context, config *page.Config, f *form) ([]string, []nodeChange, error)
	do      func(ctx context.Context, config *page.Config, f form) error
}

// Actions, as the forms name them.
const (
	actPromote     = "promote"
	actApprove     = "approve"
	actWithdraw    = "withdraw"
	actQuarantine  = "quarantine"
	actHold        = "hold"
	actReleaseHold = "release-hold"
	actRollback    = "rollback"
)

// actions are what can be decided on pages.
func actions() map[string]action {
	return map[string]action{
		actPromote: {
			title:  func(f form) string { return "Promote " + f.Model + " to " + f.Environment },
			button: "Promote", permission: storage.PermissionPromote, asks: true, may: true, replaces: true, release: true, follows: promotionFollows,
			do: func(ctx context.Context, config *page.Config, f form) error {
				_, err := config.Registry.Promote(ctx, api.PromoteRequest{
					Model: f.Model, Ref: string(f.Release), To: f.Environment, Reason: f.Reason, Replaces: &f.Replaces})
				return err
			},
		},
		actRollback: {
			title:  func(f form) string { return "Roll back " + f.Model + " in " + f.Environment },
			button: "Roll back", permission: storage.PermissionPromote, asks: true, replaces: true, follows: rollbackFollows,
			do: func(ctx context.Context, config *page.Config, f form) error {
				_, err := config.Registry.Rollback(ctx, f.rollback())
				return err
			},
		},
		actHold: {
			title:  func(f form) string { return "Hold " + f.Model + " in " + f.Environment },
			button: "Hold promotions", permission: storage.PermissionPromote, asks: true,
			follows: func(_ context.Context, _ *page.Config, f *form) ([]string, []nodeChange, error) {
				return []string{"Promotions to " + f.Environment + " are refused, with your reason, until the hold is released. The present release stays."}, nil, nil
			},
			do: func(ctx context.Context, config *page.Config, f form) error {
				return config.Registry.SetHold(ctx, f.Environment, f.Model, f.Reason)
			},
		},
		actReleaseHold: {
			title:  func(f form) string { return "Release the hold of " + f.Model + " in " + f.Environment },
			button: "Release the hold", permission: storage.PermissionPromote, asks: true, holds: true,
			follows: func(_ context.Context, _ *page.Config, f *form) ([]string, []nodeChange, error) {
				return []string{"Promotions to " + f.Environment + " are decided by its requirements again."}, nil, nil
			},
			do: func(ctx context.Context, config *page.Config, f form) error {
				return config.Registry.ReleaseHold(ctx, api.HoldRelease{Environment: f.Environment, Model: f.Model, Reason: f.Reason, Seen: &f.Hold})
			},
		},
		actApprove:    attested(evidence.AttestApproval, "Approve", "Approve", "The service signs in your name that this release may be promoted to %s."),
		actWithdraw:   attested(evidence.AttestWithdrawal, "Withdraw your approval of", "Withdraw an approval", "What you approved of this release for %s does not count any more."),
		actQuarantine: attested(evidence.AttestQuarantine, "Quarantine", "Quarantine", "Nodes are no longer given this release, in %s and in your other environments, and it cannot be promoted. Heads do not move."),
	}
}

// attested is an action by which the service signs what a person says.
func attested(kind evidence.AttestKind, verb, button, follows string) action {
	return action{
		title: func(f form) string {
			return verb + " " + page.DigestOf(f.Release).Short + " of " + f.Model + " for " + f.Environment
		},
		button: button, permission: storage.PermissionAttest, person: true, asks: true, release: true,
		follows: func(_ context.Context, _ *page.Config, f *form) ([]string, []nodeChange, error) {
			return []string{fmt.Sprintf(follows, f.Environment)}, nil, nil
		},
		do: func(ctx context.Context, config *page.Config, f form) error {
			_, err := config.Registry.Attest(ctx, evidence.AttestRequest{Kind: kind, Environment: f.Environment, Model: f.Model, Release: f.Release, Comment: f.Reason})
			return err
		},
	}
}

// denied says why the caller may not do it; empty: nothing that is known here is against it.
func (a action) denied(ctx context.Context, f form) string {
	p, _ := storage.PrincipalOf(ctx)
	switch {
	case a.person && p.Person == evidence.Person{}:
		return "The service signs this in the name of a person, and you are not signed in as one."
	case !p.May(a.permission, f.Environment, f.Model):
		return fmt.Sprintf("You do not have the permission %q for %s in %s. An administrator grants it.", a.permission, f.Model, f.Environment)
	}
	return ""
}

// offer is a link to a form, or why the reader may not use it.
type offer struct{ Text, URL, Denied string }

// offers are links to forms.
func offers(ctx context.Context, forms ...form) []offer {
	var all []offer
	for _, f := range forms {
		a := actions()[f.Action]
		all = append(all, offer{a.button, f.link(), a.denied(ctx, f)})
	}
	return all
}

// promotionFollows says what a promotion changes for nodes.
func promotionFollows(ctx context.Context, config *page.Config, f *form) ([]string, []nodeChange, error) {
	environments, err := config.Registry.Environments(ctx)
	if err != nil {
		return nil, nil, err
	}
	from, _, err := environments.Edge("", f.Environment)
	if err != nil {
		return nil, nil, err
	}
	follows := []string{fmt.Sprintf(
		"Every requirement is decided again, and all bytes are read. The release is %s of %s.", page.DigestOf(f.Release).Short, from.Name)}
	head, err := readHead(ctx, config.Registry, from.Name, f.Model)
	if err != nil {
		return nil, nil, err
	}
	if head.Release != f.Release {
		follows = append(follows, from.Name+" has another release by now, "+registry.PlainText(head.Version)+": this form is about the one that it names.")
	}
	rows, _, err := releases.ReadCoverage(ctx, config, f.Model, releases.At{Environment: from.Name, Release: f.Release}, releases.At{Environment: f.Environment, Release: f.Replaces})
	if err != nil {
		return nil, nil, err
	}
	var changes []nodeChange
	for _, row := range rows {
		if row.Differs {
			changes = append(changes, nodeChange{row.Node, row.Engines[1].Gets(), row.Engines[0].Gets()})
		}
	}
	return follows, changes, nil
}

// rollback is the request for a rollback.
func (f form) rollback() api.RollbackRequest {
	return api.RollbackRequest{Environment: f.Environment, Model: f.Model, Version: f.Version, Reason: f.Reason, Replaces: &f.Replaces}
}

// rollbackFollows says where a rollback goes, and which nodes get another engine or none. The form then names that version:
// by the time it is sent, the release before the head may be another one.
func rollbackFollows(ctx context.Context, config *page.Config, f *form) ([]string, []nodeChange, error) {
	p, err := config.Preview.PreviewRollback(ctx, f.rollback())
	if err != nil {
		return nil, nil, err
	}
	f.Version = p.Version
	follows := []string{fmt.Sprintf(
		"%s goes back to %s and is held there: promotions wait until the hold is released. All its bytes are read first.", f.Environment, p.Version)}
	for _, w := range p.Warnings {
		follows = append(follows, registry.PlainText(w))
	}
	var changes []nodeChange
	for _, n := range p.Nodes {
		changes = append(changes, nodeChange{registry.PlainText(n.Node), orNone(n.From), orNone(n.To)})
	}
	return follows, changes, nil
}

func orNone(engine string) string {
	if engine == "" {
		return "none"
	}
	return registry.PlainText(engine)
}
