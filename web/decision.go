package web

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
)

// decision is what the policy of an environment says about a release. Lists and pages show it
// by this one view.
type decision struct {
	State    page.State
	Version  string
	From, To string
	URL      string // of the page about the promotion
	Met      int    // requirements
	Total    int
	Groups   []requirement // all of them; what is unmet first
	Blocked  []requirement // those of Groups that are unmet
	Refusal  string        // why it is refused although every requirement is met; empty otherwise
	Hold     string
	Until    page.Moment
	Ignored  []page.Ignored
}

// requirement is one requirement with all subjects that have the same state for the same reason.
type requirement struct {
	Name     string
	State    page.State
	Subjects []string
	Detail   string
	Evidence []page.Digest
	Proofs   []page.Link // of the evidence; nil where a page does not link it
}

// subjectsShown is how many subjects a list names.
const subjectsShown = 3

// Of names the subjects in a list, or counts them if there are many.
func (r requirement) Of() []string {
	if len(r.Subjects) > subjectsShown {
		return []string{fmt.Sprintf("%d, such as %s", len(r.Subjects), r.Subjects[len(r.Subjects)-1])}
	}
	return r.Subjects
}

// decisionOf describes a decision. refused is the error with which a promotion would end; nil if it would be done.
func decisionOf(now storage.Clock, p api.Promotion, refused error) decision {
	d := p.Decision
	view := decision{
		Version: p.Version, From: p.From, To: p.Environment, URL: page.PromotionURL(p.Environment, p.Model),
		Total: len(d.Requirements), Hold: registry.PlainText(p.Hold), Until: page.MomentOf(now, d.Until),
	}
	for _, r := range d.Requirements {
		view.add(r)
		if r.Met || r.Skipped {
			view.Met++
		}
	}
	for _, i := range d.Ignored {
		view.Ignored = append(view.Ignored, page.Ignored{Bundle: page.DigestOf(i.Bundle), Reason: registry.PlainText(i.Reason)})
	}
	var unmet, rest []requirement
	for _, g := range view.Groups {
		if g.State.Class == page.ClassGood {
			rest = append(rest, g)
		} else {
			unmet = append(unmet, g)
		}
	}
	view.Groups, view.Blocked = append(unmet, rest...), unmet
	view.State = verdictOf(view, d, p, refused)
	if refused != nil && d.Allowed() {
		text, _ := registry.TextForClients(refused)
		view.Refusal = registry.PlainText(strings.ReplaceAll(text, "\n", "; "))
	}
	return view
}

// verdictOf is the decision in a word.
func verdictOf(view decision, d policy.Decision, p api.Promotion, refused error) page.State {
	switch {
	case slices.ContainsFunc(d.Unmet(), policy.Requirement.Objects):
		return page.StateOf(page.ClassBad, "refused")
	case len(view.Blocked) > 0:
		return page.StateOf(page.ClassWait, registry.Count(len(view.Blocked), "reason")+" to wait")
	case p.Hold != "":
		return page.StateOf(page.ClassWait, "held")
	case refused != nil:
		return page.StateOf(page.ClassBad, "refused")
	case !d.Allowed():
		return page.StateOf(page.ClassBad, "refused")
	case p.Unchanged:
		return page.StateOf(page.ClassGood, "is there")
	}
	return page.StateOf(page.ClassGood, "may be promoted")
}

// add adds a requirement to the group of those that read the same.
func (d *decision) add(r policy.Requirement) {
	state := page.StateOf(page.ClassWait, r.State())
	switch {
	case r.Met:
		state = page.StateOf(page.ClassGood, r.State())
	case r.Objects() && !r.Skipped:
		state = page.StateOf(page.ClassBad, r.State())
	}
	detail := registry.PlainText(r.Detail)
	for i := range d.Groups {
		if g := &d.Groups[i]; g.Name == r.Name && g.State == state && g.Detail == detail {
			g.Subjects = append(g.Subjects, r.Subject)
			g.Evidence = append(g.Evidence, page.DigestsOf(r.Evidence)...)
			return
		}
	}
	d.Groups = append(d.Groups, requirement{Name: r.Name, State: state, Subjects: []string{r.Subject}, Detail: detail, Evidence: page.DigestsOf(r.Evidence)})
}

// askPolicy asks the policy, whose refusal is an answer too. So is content that was changed: it
// concerns one model, and others are still shown.
func askPolicy(ctx context.Context, config *page.Config, r api.PromoteRequest) (decision, error) {
	p, err := config.Preview.Preview(ctx, r)
	switch code := registry.CodeOf(err); {
	case err == nil, code == registry.CodePolicy, code == registry.CodeTrust, code == registry.CodeDigest:
	default:
		return decision{}, err
	}
	if p.Environment == "" {
		p.Environment, p.From, p.Model = r.To, r.From, r.Model
	}
	return decisionOf(config.Now, p, err), nil
}

// waitingDecisions are the decisions about what an environment before has and the next one has not. Those that the
// reader may not see are left out.
func waitingDecisions(ctx context.Context, config *page.Config, environments policy.Environments, m history.ModelHeads) ([]decision, error) {
	var all []decision
	for _, to := range environments.List {
		from := headIn(m.Heads, to.From)
		if !to.Protected() || from.Release == "" || from.Release == headIn(m.Heads, to.Name).Release {
			continue
		}
		d, err := askPolicy(ctx, config, api.PromoteRequest{Model: m.Name, From: to.From, To: to.Name})
		switch {
		case registry.HasCode(err, registry.CodeForbidden) || registry.HasCode(err, registry.CodeNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, d)
		}
	}
	return all, nil
}
