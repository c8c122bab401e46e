package catalog_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/internal/catalog"
)

var errBroken = errors.New("the database does not answer")

// database is a transaction on rows that a test sets. Calls are counted; one of them can fail.
type database struct {
	state registry.ModelState
	tags  map[string]registry.Digest // by repository and tag
	calls []string
	fails int // number of the call that fails, from 1; 0: none
}

func (d *database) call(name string) error {
	if d.calls = append(d.calls, name); len(d.calls) == d.fails {
		return errBroken
	}
	return nil
}

func (d *database) Last(context.Context) (registry.Event, error) {
	return registry.Event{}, d.call("Last")
}

func (d *database) ModelState(context.Context, string, string) (registry.ModelState, error) {
	return d.state, d.call("ModelState")
}

func (d *database) Since(context.Context, string, int64) ([]registry.Event, error) {
	return nil, d.call("Since")
}

func (d *database) Tag(_ context.Context, repository, tag string) (registry.Digest, error) {
	return d.tags[repository+":"+tag], d.call("Tag")
}

func (d *database) Recorded(context.Context, registry.ManifestPlace) (bool, error) {
	return true, d.call("Recorded")
}

func (d *database) SetHead(context.Context, registry.Head) error { return d.call("SetHead") }

func (d *database) PutManifest(context.Context, string, registry.Manifest) error {
	return d.call("PutManifest")
}

func (d *database) MoveTag(context.Context, registry.TagMove) error { return d.call("MoveTag") }

func (d *database) EndIntent(context.Context, string, string, registry.Digest) error {
	return d.call("EndIntent")
}

func (d *database) AddToCounter(context.Context, string, int64) error { return d.call("AddToCounter") }

func (d *database) AppendEvent(context.Context, int64, string) error { return d.call("AppendEvent") }

func (d *database) SetConfigurationPart(context.Context, registry.ConfigurationPart) error {
	return d.call("SetConfigurationPart")
}

// publication is a change that sets a head, and everything else that a change can set.
func publication() registry.Change {
	release := digest.FromString("release")
	move := registry.TagMove{Repository: "prod/digits", Tag: "1.0.0", Digest: release, Immutable: true}
	return registry.Change{
		Event:         registry.Event{Time: time.Unix(1, 0), Kind: registry.EventPromote, Environment: "prod", Model: "digits", Version: "1.0.0", Release: release},
		DecisionBasis: &registry.DecisionBasis{}, Move: &registry.HeadMove{},
		Adds:      []registry.RepositoryManifest{{Repository: "prod/digits"}},
		Needs:     []registry.ManifestPlace{{Repository: "prod/digits", Digest: release}},
		Tags:      []registry.TagMove{move, {Repository: "prod/digits", Tag: "current", Digest: release}},
		EndIntent: true,
		Configure: &registry.ConfigurationMove{To: registry.Configuration{Environments: digest.FromString("environments.yaml")}},
	}
}

// apply decides a change and writes it.
func (d *database) apply(ctx context.Context, c registry.Change) (catalog.Outcome, error) {
	o, err := catalog.Decide(ctx, d, c)
	if err != nil {
		return o, err
	}
	return o, o.Write(ctx, d)
}

// Whatever call of a database fails, the change fails, and nothing is written after it: the transaction is undone. The
// event comes last, since readers of the history look for its effects.
func TestChangesFailWithTheirDatabase(t *testing.T) {
	t.Parallel()
	restriction := publication()
	restriction.Event.Kind = registry.EventRestrict
	for name, change := range map[string]registry.Change{"a publication": publication(), "a restriction": restriction} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := new(database)
			if _, err := whole.apply(t.Context(), change); err != nil {
				t.Fatal(err)
			}
			if last := whole.calls[len(whole.calls)-1]; last != "AppendEvent" || slices.Contains(whole.calls, "AddToCounter") != (name == "a restriction") {
				t.Errorf("calls were %q, want the event at the end, and a restriction counted", whole.calls)
			}
			for i := range whole.calls {
				d := &database{fails: i + 1}
				if _, err := d.apply(t.Context(), change); !errors.Is(err, errBroken) || len(d.calls) != i+1 {
					t.Errorf("%s failed: error %v after the calls %q, want it at once", whole.calls[i], err, d.calls)
				}
			}
		})
	}
}

// A change that is refused writes nothing.
func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	other := digest.FromString("other")
	for name, c := range map[string]struct {
		change   func(*registry.Change)
		database *database
		code     registry.Code // empty: it is made
	}{
		"a new version":           {func(*registry.Change) {}, new(database), ""},
		"the same version again":  {func(*registry.Change) {}, &database{tags: map[string]registry.Digest{"prod/digits:1.0.0": digest.FromString("release")}}, ""},
		"a version that is taken": {func(*registry.Change) {}, &database{tags: map[string]registry.Digest{"prod/digits:1.0.0": other}}, registry.CodeConflict},
		"a tag that may move":     {func(*registry.Change) {}, &database{tags: map[string]registry.Digest{"prod/digits:current": other}}, ""},
		"two versions in one change": {func(c *registry.Change) {
			c.Tags = append(c.Tags, registry.TagMove{Repository: "prod/digits", Tag: "1.0.0", Digest: other, Immutable: true})
		}, new(database), registry.CodeConflict},
		"a head without a basis":     {func(c *registry.Change) { c.DecisionBasis = nil }, new(database), registry.CodeInvalid},
		"a head without a release":   {func(c *registry.Change) { c.Event.Release = "" }, new(database), registry.CodeInvalid},
		"another configuration":      {func(c *registry.Change) { c.Configure.Expect.Environments = other }, new(database), registry.CodeConflict},
		"a decision that is too old": {func(c *registry.Change) { c.DecisionBasis.Until = c.Event.Time }, new(database), registry.CodeConflict},
		"a head that moved": {func(*registry.Change) {},
			&database{state: registry.ModelState{Head: registry.Head{Environment: "prod", Model: "digits", Release: other}}}, registry.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := publication()
			c.change(&change)
			o, err := c.database.apply(t.Context(), change)
			if (err == nil) != (c.code == "") || err != nil && !registry.HasCode(err, c.code) {
				t.Errorf("got %+v and error %v, want the code %q", o, err, c.code)
			}
			if wrote := slices.ContainsFunc(c.database.calls, func(call string) bool { return strings.HasPrefix(call, "Set") || call == "MoveTag" }); wrote != (err == nil) {
				t.Errorf("the calls were %q, error %v", c.database.calls, err)
			}
		})
	}
}

// A head that stays keeps its time.
func TestHeadsKeepTheirTime(t *testing.T) {
	t.Parallel()
	change := publication()
	since := time.Unix(0, 0).UTC()
	for name, c := range map[string]struct {
		before registry.Digest
		want   time.Time
	}{"the same release": {change.Event.Release, since}, "another release": {digest.FromString("other"), change.Event.Time.UTC()}} {
		moved := publication()
		head := registry.Head{Environment: "prod", Model: "digits", Release: c.before, Since: since}
		moved.DecisionBasis.Head = head
		o, err := (&database{state: registry.ModelState{Head: head}}).apply(t.Context(), moved)
		if err != nil || o.Head == nil || !o.Head.Since.Equal(c.want) {
			t.Errorf("%s: got %+v and error %v, want it since %s", name, o.Head, err, c.want)
		}
	}
}
