package registrytest_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
)

// Whatever an event says, a change of any field of it breaks the chain.
func TestChainShowsTampering(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before, err := drawEvent(t).Chain(history.Event{})
		if err != nil {
			t.Fatal(err)
		}
		event, err := drawEvent(t).Chain(before)
		if err != nil {
			t.Fatal(err)
		}
		if err := event.VerifyChain(before); err != nil {
			t.Fatalf("an untouched event: %v", err)
		}
		for i := range reflect.TypeFor[history.Event]().NumField() {
			changed := event
			field := reflect.ValueOf(&changed).Elem().Field(i)
			name := reflect.TypeFor[history.Event]().Field(i).Name
			tamper(t, name, field)
			if err := changed.VerifyChain(before); registry.CodeOf(err) != registry.CodeTrust {
				t.Fatalf("%s changed to %v: got %v, want code %s", name, field, err, registry.CodeTrust)
			}
		}
	})
}

func tamper(t *rapid.T, name string, field reflect.Value) {
	switch v := field.Interface().(type) {
	case int64:
		field.SetInt(v + rapid.Int64Range(1, 1000).Draw(t, name))
	case time.Time:
		field.Set(reflect.ValueOf(v.Add(rapid.SampledFrom([]time.Duration{time.Microsecond, -time.Microsecond, time.Hour}).Draw(t, name))))
	case []string:
		field.Set(reflect.ValueOf(append(v[:len(v):len(v)], "approvals")))
	case []registry.Digest:
		field.Set(reflect.ValueOf(append(v[:len(v):len(v)], digest.FromString("more"))))
	case *evidence.Person:
		other := evidence.Person{Principal: "token:other", Token: "other"}
		if v != nil {
			other = *v
			other.Name += "x"
		}
		field.Set(reflect.ValueOf(&other))
	default:
		field.SetString(field.String() + "x")
	}
}

func drawEvent(t *rapid.T) history.Event {
	text := func(name string) string { return rapid.String().Draw(t, name) }
	d := func(name string) registry.Digest {
		return rapid.SampledFrom([]registry.Digest{"", digest.FromString("a"), digest.FromString("b")}).Draw(t, name)
	}
	return history.Event{
		Time: time.Unix(0, rapid.Int64Range(0, 1<<60).Draw(t, "time")), Kind: history.EventPromote,
		Environment: text("environment"), Model: text("model"), Version: text("version"),
		Release: d("release"), Previous: d("previous"), Subject: d("subject"), PredicateType: text("type"),
		Evidence: rapid.SliceOf(rapid.Just(digest.FromString("e"))).Draw(t, "evidence"),
		Signer:   text("signer"), Reason: text("reason"), Policy: d("policy"), Environments: d("environments"),
		Skipped: rapid.SliceOf(rapid.SampledFrom([]string{"approvals", "no-freeze"})).Draw(t, "skipped"),
		Person:  rapid.SampledFrom([]*evidence.Person{nil, {Principal: "token:jane", Token: "jane"}}).Draw(t, "person"),
	}
}
