package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/storage"
	"mlpromote.dev/mlpromote/web/page"
	"mlpromote.dev/mlpromote/web/releases"
)

// event is an entry of the history as pages show it.
type event struct {
	Seq         int64
	First       int64 // of the events that this entry stands for; 0 if it is one
	Time        page.Moment
	Kind        string
	State       page.State
	Text        string // what happened, in words
	Environment string
	Model       string
	ModelURL    string
	Version     string
	URL         string // of the release; empty if the event has none
	By          string
	Reason      string
	Hash        page.Digest
}

// recentEvents lists what happened to a model, newest first, as up to limit entries. Evidence that was attached to one
// release within a minute is one entry.
func recentEvents(ctx context.Context, config *page.Config, model string, limit int) ([]event, error) {
	all, err := config.Registry.History(ctx, history.HistoryQuery{Model: model, Descending: true, Limit: recentRead})
	if err != nil {
		return nil, err
	}
	var out []event
	for len(all) > 0 && len(out) < limit {
		n := groupLength(all)
		view := describeEvent(config.Now, all[0])
		if n > 1 {
			view = foldEvents(config.Now, all[:n])
		}
		out, all = append(out, view), all[n:]
	}
	return out, nil
}

// recentRead is how many events are read for a list of recent ones, since builds and verifications attach dozens.
const recentRead = 200

// routine reports whether an event attached evidence that programs make. What a person says stands alone.
func routine(e history.Event) bool {
	switch e.PredicateType {
	case evidence.PredicateApproval, evidence.PredicateBreakGlass, evidence.PredicateQuarantine:
		return false
	}
	return e.Kind == history.EventAttach && e.Reason == ""
}

// groupLength counts the events at the start of a list that one entry stands for: evidence that was attached to one release,
// in one environment and by one caller, within a minute of the first.
func groupLength(all []history.Event) int {
	n, first := 1, all[0]
	for n < len(all) && routine(first) && routine(all[n]) && all[n].Environment == first.Environment && all[n].Release == first.Release &&
		all[n].Principal == first.Principal && first.Time.Sub(all[n].Time).Abs() < time.Minute {
		n++
	}
	return n
}

// foldEvents describes events that one entry stands for, newest first, by the newest and the kinds of evidence.
func foldEvents(now storage.Clock, all []history.Event) event {
	counts := make(map[string]int)
	for _, e := range all {
		counts[releases.EvidenceName(e.PredicateType)]++
	}
	var kinds []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		kinds = append(kinds, fmt.Sprintf("%d × %s", counts[name], name))
	}
	view := describeEvent(now, all[0])
	view.Text = registry.PlainText(fmt.Sprintf("%d statements were attached in %s: %s", len(all), all[0].Environment, strings.Join(kinds, ", ")))
	view.First = all[len(all)-1].Seq
	return view
}

func describeEvent(now storage.Clock, e history.Event) event {
	class, text := describe(e)
	view := event{
		Seq: e.Seq, Time: page.MomentOf(now, e.Time), Kind: string(e.Kind), State: page.StateOf(class, string(e.Kind)), Text: registry.PlainText(text),
		Environment: registry.PlainText(e.Environment), Model: registry.PlainText(e.Model), Version: registry.PlainText(e.Version),
		By: registry.PlainText(cmp.Or(page.NameOf(e.Principal), "local user")), Reason: registry.PlainText(e.Reason), Hash: page.DigestOf(e.Hash),
	}
	if e.Model != "" {
		view.ModelURL = page.ModelURL(e.Model)
		if e.Release != "" {
			view.URL = page.ReleaseURL(e.Model, e.Release, e.Environment)
		}
	}
	return view
}

// describe says what an event changed, and of which class that is.
func describe(e history.Event) (class, text string) {
	switch e.Kind {
	case history.EventPublish:
		return page.ClassPlain, e.Version + " was published in " + e.Environment
	case history.EventPromote:
		return page.ClassGood, e.Version + " was promoted to " + e.Environment
	case history.EventRollback:
		return page.ClassBad, e.Environment + " was rolled back to " + e.Version
	case history.EventAttach:
		return page.ClassPlain, releases.EvidenceName(e.PredicateType) + " was attached in " + e.Environment
	case history.EventHoldSet:
		return page.ClassWait, e.Environment + " was held"
	case history.EventHoldRelease:
		return page.ClassGood, "the hold of " + e.Environment + " was released"
	case history.EventConfigure:
		return page.ClassPlain, "the configuration changed"
	case history.EventRestrict:
		return page.ClassWait, "restriction list " + e.Version + " of " + e.Environment + " is in force"
	case history.EventTrust:
		return page.ClassPlain, "trust bundle " + e.Version + " was published"
	case history.EventAccept:
		return page.ClassWait, "a history fault in " + e.Environment + " was accepted"
	case history.EventRestore:
		return page.ClassWait, "the registry was restored from a backup"
	}
	return page.ClassPlain, string(e.Kind)
}
