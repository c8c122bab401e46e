package web

import (
	"cmp"
	"context"

	"mlpromote.dev/mlpromote/registry"
)

// event is an entry of the history as pages show it.
type event struct {
	Seq         int64
	Time        moment
	Kind        string
	State       state
	Text        string // what happened, in words
	Environment string
	Model       string
	ModelURL    string
	Version     string
	URL         string // of the release; empty if the event has none
	By          string
	Reason      string
	Hash        digest
}

func (s *site) events(ctx context.Context, q registry.HistoryQuery) ([]event, error) {
	all, err := s.Registry.History(ctx, q)
	if err != nil {
		return nil, err
	}
	var out []event
	for _, e := range all {
		out = append(out, s.event(e))
	}
	return out, nil
}

func (s *site) event(e registry.Event) event {
	class, text := describe(e)
	view := event{
		Seq: e.Seq, Time: s.when(e.Time), Kind: string(e.Kind), State: stateOf(class, string(e.Kind)), Text: registry.PlainText(text),
		Environment: registry.PlainText(e.Environment), Model: registry.PlainText(e.Model), Version: registry.PlainText(e.Version),
		By: registry.PlainText(cmp.Or(nameOf(e.Principal), "local user")), Reason: registry.PlainText(e.Reason), Hash: digestOf(e.Hash),
	}
	if e.Model != "" {
		view.ModelURL = modelURL(e.Model)
		if e.Release != "" {
			view.URL = releaseURL(e.Model, e.Release, e.Environment)
		}
	}
	return view
}

// describe says what an event changed, and of which class that is.
func describe(e registry.Event) (class, text string) {
	switch e.Kind {
	case registry.EventPublish:
		return classPlain, e.Version + " was published in " + e.Environment
	case registry.EventPromote:
		return classGood, e.Version + " was promoted to " + e.Environment
	case registry.EventRollback:
		return classBad, e.Environment + " was rolled back to " + e.Version
	case registry.EventAttach:
		return classPlain, evidenceName(e.PredicateType) + " was attached in " + e.Environment
	case registry.EventHoldSet:
		return classWait, e.Environment + " was held"
	case registry.EventHoldRelease:
		return classGood, "the hold of " + e.Environment + " was released"
	case registry.EventConfigure:
		return classPlain, "the configuration changed"
	case registry.EventRestrict:
		return classWait, "restriction list " + e.Version + " of " + e.Environment + " is in force"
	case registry.EventTrust:
		return classPlain, "trust bundle " + e.Version + " was published"
	case registry.EventAccept:
		return classWait, "a history fault in " + e.Environment + " was accepted"
	}
	return classPlain, string(e.Kind)
}

// evidenceName is the name of a kind of evidence in words.
func evidenceName(predicateType string) string {
	switch predicateType {
	case registry.PredicateSign:
		return "signature"
	case registry.PredicateProvenance:
		return "provenance"
	case registry.PredicateTestResult:
		return "test result"
	case registry.PredicateParity:
		return "parity report"
	case registry.PredicatePerformance:
		return "performance report"
	case registry.PredicateApproval:
		return "approval"
	case registry.PredicateBreakGlass:
		return "break-glass approval"
	case registry.PredicateQuarantine:
		return "quarantine"
	case registry.PredicateVSA:
		return "verification summary"
	}
	return predicateType
}
