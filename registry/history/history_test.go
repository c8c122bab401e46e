package history_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

func drawEvent(t *rapid.T) history.Event {
	text := rapid.StringMatching(`[a-z0-9 é"<&]{0,6}`)
	d := rapid.Custom(func(t *rapid.T) registry.Digest {
		word := text.Draw(t, "word")
		if word == "" {
			return ""
		}
		return digest.FromString(word)
	})
	return history.Event{
		Time: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).In(time.FixedZone("", 3600)),
		Kind: history.EventKind(text.Draw(t, "kind")), Environment: text.Draw(t, "environment"), Model: text.Draw(t, "model"),
		Version: text.Draw(t, "version"), Release: d.Draw(t, "release"), Previous: d.Draw(t, "previous"), Subject: d.Draw(t, "subject"),
		PredicateType: text.Draw(t, "predicate"), Evidence: rapid.SliceOfN(d, 0, 3).Draw(t, "evidence"), Signer: text.Draw(t, "signer"),
		Reason: text.Draw(t, "reason"), Skipped: rapid.SliceOfN(text, 0, 3).Draw(t, "skipped"), Policy: d.Draw(t, "policy"), Environments: d.Draw(t, "environments"),
	}
}

// drawChain is a history of a few events.
func drawChain(t *rapid.T) []history.Event {
	var events []history.Event
	var before history.Event
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		e, err := drawEvent(t).Chain(before)
		if err != nil {
			t.Fatal(err)
		}
		events, before = append(events, e), e
	}
	return events
}

func verify(events []history.Event) error {
	var before history.Event
	for _, e := range events {
		if err := e.VerifyChain(before); err != nil {
			return err
		}
		before = e
	}
	return nil
}

// tamper changes one field of an event, whichever fields there are.
func tamper(t *rapid.T, e *history.Event) string {
	v := reflect.ValueOf(e).Elem()
	i := rapid.IntRange(0, v.NumField()-1).Draw(t, "field")
	switch field := v.Field(i).Addr().Interface().(type) {
	case *int64:
		*field += rapid.SampledFrom([]int64{-1, 1}).Draw(t, "by")
	case *time.Time:
		*field = field.Add(rapid.SampledFrom([]time.Duration{1, time.Microsecond, -time.Hour}).Draw(t, "by"))
	case *history.EventKind:
		*field += "x"
	case *string:
		*field += "x"
	case *registry.Digest:
		*field = digest.FromString("tampered" + string(*field))
	case *[]registry.Digest:
		*field = append([]registry.Digest{digest.FromString("tampered")}, *field...)
	case *[]string:
		*field = append([]string{"tampered"}, *field...)
	case **evidence.Person:
		*field = &evidence.Person{Principal: e.Principal + "x"}
	default:
		t.Fatalf("field %s has a type that this test does not know: %T", v.Type().Field(i).Name, field)
	}
	return v.Type().Field(i).Name
}

func TestChainShowsEveryChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := drawChain(t)
		if err := verify(events); err != nil {
			t.Fatalf("the history as it was written: %v", err)
		}
		i := rapid.IntRange(0, len(events)-1).Draw(t, "row")
		name := tamper(t, &events[i])
		err := verify(events)
		if registry.CodeOf(err) != registry.CodeTrust || !strings.Contains(err.Error(), "event ") {
			t.Fatalf("field %s of row %d was changed: error %v, want CodeTrust that names the event", name, i+1, err)
		}
	})
}

func TestChainShowsMissingAndSwappedRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := drawChain(t)
		last := events[len(events)-1]
		if len(events) > 1 {
			without := append([]history.Event{}, events[1:]...)
			if verify(without) == nil {
				t.Fatal("the first row is gone unseen")
			}
			events[0], events[1] = events[1], events[0]
			if verify(events) == nil {
				t.Fatal("two rows were swapped unseen")
			}
		}
		if err := last.VerifyChain(history.Event{Seq: last.Seq - 1, Hash: digest.FromString("another")}); err == nil {
			t.Fatal("a row follows another history unseen")
		}
	})
}

func TestChainPlace(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.FixedZone("", 7200))
	first, err := history.Event{Time: at, Kind: history.EventPublish, Seq: 9, Hash: "forged"}.Chain(history.Event{})
	if err != nil {
		t.Fatal(err)
	}
	if first.Seq != 1 || first.Prev != "" || first.Hash.Validate() != nil || fmt.Sprint(first.Time) != "2026-01-02 01:04:05.678901 +0000 UTC" {
		t.Errorf("the first row is %+v", first)
	}
	second, err := history.Event{Time: at, Kind: history.EventPublish}.Chain(first)
	if err != nil || second.Seq != 2 || second.Prev != first.Hash || second.Hash == first.Hash {
		t.Errorf("the second row is %+v, error %v", second, err)
	}
}

// An event without the digests of rules keeps its hash; one that loses or
// gets them does not.
func TestEarlierEvents(t *testing.T) {
	t.Parallel()
	const written = `{"environment":"prod","kind":"promote","model":"m","release":"sha256:4c94485e0c21ae6c41ce1dfe7b6bfaceea5ab68e40a2476f50208e526f506080","seq":1,"time":"2026-11-01T08:00:00Z","version":"1.0.0"}`
	hash := digest.FromString(written)
	var e history.Event
	if err := json.Unmarshal([]byte(strings.TrimSuffix(written, "}")+`,"hash":"`+string(hash)+`"}`), &e); err != nil {
		t.Fatal(err)
	}
	if err := e.VerifyChain(history.Event{}); err != nil {
		t.Errorf("an event without the digests: %v", err)
	}
	for name, edit := range map[string]func(*history.Event){
		"policy": func(e *history.Event) { e.Policy = hash }, "environments": func(e *history.Event) { e.Environments = hash },
	} {
		later := e
		edit(&later)
		if err := later.VerifyChain(history.Event{}); registry.CodeOf(err) != registry.CodeTrust {
			t.Errorf("%s was added afterwards: got %v, want CodeTrust", name, err)
		}
		chained, err := later.Chain(history.Event{})
		if err != nil {
			t.Fatal(err)
		}
		chained.Policy, chained.Environments = "", ""
		if err := chained.VerifyChain(history.Event{}); registry.CodeOf(err) != registry.CodeTrust {
			t.Errorf("%s was removed: got %v, want CodeTrust", name, err)
		}
	}
}

// A query for a signer or a principal selects their events alone.
func TestHistoryQuerySelectsBy(t *testing.T) {
	t.Parallel()
	e := history.Event{Signer: "key", Principal: "token:ci"}
	for _, c := range []struct {
		query history.HistoryQuery
		want  bool
	}{
		{history.HistoryQuery{}, true},
		{history.HistoryQuery{Signer: "key"}, true},
		{history.HistoryQuery{Principal: "token:ci"}, true},
		{history.HistoryQuery{Signer: "key", Principal: "token:ci"}, true},
		{history.HistoryQuery{Signer: "other"}, false},
		{history.HistoryQuery{Principal: "token:other"}, false},
		{history.HistoryQuery{Signer: "key", Principal: "token:other"}, false},
		{history.HistoryQuery{Signer: "other", Principal: "token:ci"}, false},
	} {
		if got := c.query.SelectsBy(e); got != c.want {
			t.Errorf("signer %q and principal %q: selected %t, want %t", c.query.Signer, c.query.Principal, got, c.want)
		}
	}
}
