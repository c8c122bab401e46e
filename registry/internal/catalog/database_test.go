package catalog_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
	"mlpromote.dev/mlpromote/registry/storage"
)

// never is a time that JSON cannot say.
var never = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// The error of a database is said, and not what its rows would say.
func TestErrorsOfADatabase(t *testing.T) {
	t.Parallel()
	fails := func() (int64, error) { return 0, errBroken }
	works := func() (int64, error) { return 0, nil }
	sizes := []catalog.ReferrerSize{{"a", 1}}
	intent := history.Intent{Environment: "prod", Model: "digits", Release: digest.FromString("release")}
	cases := map[string]func() error{
		"content of a catalog": func() error { return catalog.ContentRecorded("postgres", 1, errBroken) },
		"an answer":            func() error { return catalog.Claimed(0, errBroken) },
		"a tag":                func() error { return catalog.TagSet("prod/digits", "1.0.0", intent.Release, 0, errBroken) },
		"a marked record":      func() error { return catalog.UnmarkRead(true, fails) },
		"an upload":            func() error { return catalog.ChangeUpload("u", fails, works) },
		"version of an upload": func() error { return catalog.ChangeUpload("u", works, fails) },
		"referrers": func() error {
			_, err := catalog.Referrers("", func(string) ([]catalog.ReferrerSize, error) { return nil, errBroken }, nil)
			return err
		},
		"pages of referrers": func() error {
			_, err := catalog.Referrers("", func(string) ([]catalog.ReferrerSize, error) { return sizes, nil },
				func(string, string) ([]storage.Manifest, error) { return nil, errBroken })
			return err
		},
		"configuration": func() error {
			_, err := catalog.Agree(t.Context(), &database{fails: 1}, history.Configuration{})
			return err
		},
		"configuration that is stored": func() error {
			_, err := catalog.Agree(t.Context(), &database{fails: 2}, history.Configuration{Environments: intent.Release})
			return err
		},
		"head of an intent": func() error {
			return catalog.Abandon(t.Context(), &database{fails: 1}, intent, func() error { return nil })
		},
		"an intent": func() error {
			return catalog.Abandon(t.Context(), new(database), intent, func() error { return errBroken })
		},
	}
	for name, call := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := call(); !errors.Is(err, errBroken) {
				t.Errorf("error %v, want that of the database", err)
			}
		})
	}
}

// What JSON cannot say is not stored.
func TestWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	rows := &documents{}
	reports := catalog.NodeReports(rows)
	report := storage.NodeReport{ReportedOn: never}
	if err := reports.Put(t.Context(), "n", report); !registry.HasCode(err, registry.CodeInvalid) || rows.body != "" {
		t.Errorf("put: error %v and the row %q, want CodeInvalid and no row", err, rows.body)
	}
	same := registry.Named[storage.NodeReport]{Name: "n", Document: report}
	if _, err := reports.DeleteSame(t.Context(), same); !registry.HasCode(err, registry.CodeInvalid) {
		t.Errorf("delete: error %v, want CodeInvalid", err)
	}
	if body, err := catalog.EncodeEvent(history.Event{Time: never}); err == nil {
		t.Errorf("an event: %q, want an error", body)
	}
	d := new(database)
	if err := (catalog.Outcome{Event: history.Event{Time: never}}).Write(t.Context(), d); err == nil || slices.Contains(d.calls, "AppendEvent") {
		t.Errorf("a change with that event: error %v after %q, want one before it is stored", err, d.calls)
	}
}

// documents is a table of one row.
type documents struct {
	body string
	err  error
}

func (d *documents) PutDocument(_ context.Context, _, _, body string) error {
	d.body = body
	return d.err
}

func (d *documents) GetDocument(context.Context, string, string) (string, error) {
	return d.body, d.err
}

func (d *documents) ListDocuments(context.Context, string, string, int) ([]catalog.DocumentRow, error) {
	return []catalog.DocumentRow{{Name: "n", Body: d.body}}, d.err
}

func (d *documents) DeleteDocument(context.Context, string, string) error { return d.err }

func (d *documents) CountDocuments(context.Context, string, string, string, int) (int, error) {
	return 1, d.err
}

func (d *documents) DeleteDocumentWith(context.Context, string, string, string) (bool, error) {
	return true, d.err
}

// A document that is damaged, or that the database does not give, is an error and not an empty document.
func TestDamagedDocuments(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]*documents{"damaged": {body: "{"}, "the database does not answer": {body: "{}", err: errBroken}} {
		reports := catalog.NodeReports(rows)
		_, get := reports.Get(t.Context(), "n")
		list, listed := reports.List(t.Context(), "", 10)
		for what, err := range map[string]error{"get": get, "list": listed} {
			if rows.err != nil && !errors.Is(err, errBroken) || rows.err == nil && !registry.HasCode(err, registry.CodeInternal) {
				t.Errorf("%s, %s: error %v", name, what, err)
			}
		}
		if len(list) > 0 {
			t.Errorf("%s: listed %v, want nothing", name, list)
		}
		if err := reports.Put(t.Context(), "n", storage.NodeReport{}); !errors.Is(err, rows.err) {
			t.Errorf("%s: put: error %v, want %v", name, err, rows.err)
		}
	}
}

// stored are the bodies of events, as a database gives them.
func stored(t *testing.T, events ...history.Event) func(catalog.Page) ([]string, error) {
	t.Helper()
	return func(p catalog.Page) ([]string, error) {
		var bodies []string
		for i, e := range events {
			if at := int64(i + 1); at <= p.After || at >= p.Before || len(bodies) == p.Size {
				continue
			}
			body, err := catalog.EncodeEvent(e)
			if err != nil {
				t.Error(err)
			}
			bodies = append(bodies, body)
		}
		return bodies, nil
	}
}

// The history gives the events of a query, all of them, until its reader has enough or a row is wrong.
func TestHistory(t *testing.T) {
	t.Parallel()
	at := func(seq int64, principal string) history.Event {
		return history.Event{Seq: seq, Principal: principal, Time: time.Unix(seq, 0).UTC()}
	}
	signed := at(3, "a")
	signed.Signer = "key"
	read := stored(t, at(1, "a"), at(2, "b"), signed, at(4, "b"), at(5, "b"))
	for name, c := range map[string]struct {
		query history.HistoryQuery
		read  func(catalog.Page) ([]string, error)
		stop  int // after so many
		want  []int64
		code  registry.Code
	}{
		"all":                        {history.HistoryQuery{}, read, math.MaxInt, []int64{1, 2, 3, 4, 5}, ""},
		"by a principal":             {history.HistoryQuery{Principal: "b"}, read, math.MaxInt, []int64{2, 4, 5}, ""},
		"one by a principal":         {history.HistoryQuery{Principal: "b", Limit: 1}, read, math.MaxInt, []int64{2}, ""},
		"one by a signer":            {history.HistoryQuery{Signer: "key", Limit: 1}, read, math.MaxInt, []int64{3}, ""},
		"as many as a page and more": {history.HistoryQuery{Limit: 3}, read, math.MaxInt, []int64{1, 2, 3}, ""},
		"a reader who has enough":    {history.HistoryQuery{}, read, 1, []int64{1}, ""},
		"a row whose number was changed to one below": {history.HistoryQuery{After: 1},
			stored(t, at(1, ""), at(1, "")), math.MaxInt, []int64{1}, registry.CodeTrust},
		"a row whose number was changed to one above": {history.HistoryQuery{Before: 3},
			stored(t, at(1, ""), at(3, "")), math.MaxInt, []int64{1, 3}, registry.CodeTrust},
		"a row that is no event": {history.HistoryQuery{},
			func(catalog.Page) ([]string, error) { return []string{"{", "{"}, nil }, math.MaxInt, []int64{0}, registry.CodeTrust},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []int64
			var failed error
			for e, err := range catalog.History(c.query, 2, c.read, func(err error) error { return err }) {
				if got, failed = append(got, e.Seq), err; len(got) == c.stop {
					break
				}
			}
			if !slices.Equal(got, c.want) || registry.CodeOf(failed) != c.code && (failed != nil || c.code != "") {
				t.Errorf("events %v, error %v; want %v and the code %q", got, failed, c.want, c.code)
			}
		})
	}
	if _, err := catalog.Recorded(1, "yesterday"); !registry.HasCode(err, registry.CodeTrust) {
		t.Errorf("a time that was changed: error %v, want CodeTrust", err)
	}
}
