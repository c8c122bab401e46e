package artifact_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/storage"
)

// Parts that both configurations have, and only those, can differ.
func TestConfigurationDiffers(t *testing.T) {
	t.Parallel()
	a, b := digest.FromString("a"), digest.FromString("b")
	for name, c := range map[string]struct {
		one, other history.Configuration
		want       string
	}{
		"equal":                {history.Configuration{Environments: a, Access: a, Promoter: a}, history.Configuration{Environments: a, Access: a, Promoter: a}, ""},
		"all differ":           {history.Configuration{Environments: a, Access: a, Promoter: a}, history.Configuration{Environments: b, Access: b, Promoter: b}, "environments access promoter"},
		"one differs":          {history.Configuration{Environments: a, Access: a}, history.Configuration{Environments: a, Access: b}, "access"},
		"not recorded there":   {history.Configuration{Promoter: a}, history.Configuration{}, ""},
		"not recorded here":    {history.Configuration{}, history.Configuration{Promoter: a}, ""},
		"nothing is recorded":  {history.Configuration{}, history.Configuration{}, ""},
		"another one recorded": {history.Configuration{Environments: a}, history.Configuration{Access: a}, ""},
	} {
		if got := strings.Join(c.one.Differs(c.other), " "); got != c.want {
			t.Errorf("%s: %q differ, want %q", name, got, c.want)
		}
	}
}

// An adopted configuration keeps the parts that it does not have, and its change names both.
func TestAdoptConfiguration(t *testing.T) {
	t.Parallel()
	a, b := digest.FromString("a"), digest.FromString("b")
	before, to := history.Configuration{Environments: a, Access: a, Promoter: a}, history.Configuration{Access: b}
	want := history.Configuration{Environments: a, Access: b, Promoter: a}
	if got := to.Over(before); got != want {
		t.Errorf("over the one before: %s, want %s", got, want)
	}
	if got := before.Over(history.Configuration{Environments: b, Access: b, Promoter: b}); got != before {
		t.Errorf("a whole one over another: %s, want %s", got, before)
	}
	if got := (history.Configuration{}).Over(before); got != before {
		t.Errorf("nothing over the one before: %s, want %s", got, before)
	}
	var set history.Configuration
	for _, p := range want.Parts() {
		set.Set(p.Name, p.Digest)
	}
	set.Set("another", b)
	if set != want {
		t.Errorf("set part by part: %s, want %s", set, want)
	}
	if got, want := to.String(), "access "+string(b); got != want {
		t.Errorf("written as %q, want %q", got, want)
	}
	change, err := storage.Adopt(before, to, "a\nreason", time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	after, _ := want.Digest()
	previous, _ := before.Digest()
	if e := change.Event; e.Subject != after || e.Previous != previous || e.Kind != history.EventConfigure || e.Reason != `a\nreason` {
		t.Errorf("event %+v, want one from %s to %s", e, previous, after)
	}
	if err := change.Configure.Check(before); err != nil {
		t.Errorf("over the one that it expects: %v", err)
	}
	if err := change.Configure.Check(want); !registry.HasCode(err, registry.CodeConflict) {
		t.Errorf("over another one: error %v, want CodeConflict", err)
	}
}

// A decision holds until something that it rests on has changed.
func TestDecisionBasisMoved(t *testing.T) {
	t.Parallel()
	engine := digest.FromString("engine")
	r := artifact.Release{Digest: digest.FromString("release"), Engines: []artifact.Engine{{Digest: engine}}}
	state := history.ModelState{Environment: "prod", Model: "m", Seq: 7, Restrictions: 2, Head: history.Head{Release: r.Digest, Hold: "wait"}}
	es := policy.Environments{Configuration: digest.FromString("environments")}
	for name, c := range map[string]struct {
		now   func(s *history.ModelState)
		since []history.Event
		says  string // empty: it holds
	}{
		"nothing":                     {func(*history.ModelState) {}, nil, ""},
		"another environment":         {func(s *history.ModelState) { s.Environment = "staging" }, nil, "the decision is for m in prod, but the change is for m in staging"},
		"another model":               {func(s *history.ModelState) { s.Model = "n" }, nil, "the change is for n in prod"},
		"the head":                    {func(s *history.ModelState) { s.Head.Release = engine }, nil, "another request moved it"},
		"the hold":                    {func(s *history.ModelState) { s.Head.Hold = "" }, nil, `its hold is "", expected "wait"`},
		"a restriction":               {func(s *history.ModelState) { s.Restrictions = 3 }, nil, "restricted"},
		"the environments":            {func(s *history.ModelState) { s.Agreed.Environments = engine }, nil, "the decision used environments"},
		"the same environments":       {func(s *history.ModelState) { s.Agreed.Environments = es.Configuration }, nil, ""},
		"access alone":                {func(s *history.ModelState) { s.Agreed.Access = engine }, nil, ""},
		"an event before":             {func(*history.ModelState) {}, []history.Event{{Seq: 7, Kind: history.EventPromote, Environment: "prod"}}, ""},
		"an event after":              {func(*history.ModelState) {}, []history.Event{{Seq: 8, Kind: history.EventPromote, Environment: "prod"}}, "(event 8) came after"},
		"an event elsewhere":          {func(*history.ModelState) {}, []history.Event{{Seq: 8, Kind: history.EventPromote, Environment: "staging"}}, ""},
		"evidence about an engine":    {func(*history.ModelState) {}, []history.Event{{Seq: 8, Kind: history.EventAttach, Environment: "staging", Subject: engine}}, "(event 8) came after"},
		"evidence about the release":  {func(*history.ModelState) {}, []history.Event{{Seq: 8, Kind: history.EventAttach, Subject: r.Digest}}, "(event 8) came after"},
		"evidence about another one":  {func(*history.ModelState) {}, []history.Event{{Seq: 8, Kind: history.EventAttach, Environment: "prod", Subject: digest.FromString("x")}}, ""},
		"the second of several after": {func(*history.ModelState) {}, []history.Event{{Seq: 8, Environment: "staging"}, {Seq: 9, Environment: "prod"}}, "(event 9) came after"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := state
			c.now(&now)
			err := history.NewDecisionBasis(state, es, r).Moved(now, c.since)
			if c.says == "" {
				if err != nil {
					t.Errorf("error %v, want none", err)
				}
				return
			}
			if !registry.HasCode(err, registry.CodeConflict) || !history.BasisOutdated(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v (outdated: %v), want CodeConflict with %q", err, history.BasisOutdated(err), c.says)
			}
		})
	}
}

// A webhook receives what comes after it was registered, and fits all that it asks for.
func TestWebhookWants(t *testing.T) {
	t.Parallel()
	noon := time.Unix(1_000, 0)
	event := history.Event{Seq: 5, Environment: "prod", Model: "m", Kind: history.EventPromote}
	damage := storage.Damage{Found: noon, Repositories: []string{"staging/n", "prod/m/sources"}}
	for name, c := range map[string]struct {
		hook           storage.Webhook
		event, damaged bool
	}{
		"all":                 {storage.Webhook{}, true, true},
		"from the event on":   {storage.Webhook{After: 4}, true, true},
		"after the event":     {storage.Webhook{After: 5}, false, true},
		"after the damage":    {storage.Webhook{Created: noon}, true, false},
		"before the damage":   {storage.Webhook{Created: noon.Add(-1)}, true, true},
		"its environment":     {storage.Webhook{Environment: "prod"}, true, true},
		"another environment": {storage.Webhook{Environment: "lab"}, false, false},
		"its model":           {storage.Webhook{Model: "m"}, true, true},
		"another model":       {storage.Webhook{Model: "o"}, false, false},
		"both":                {storage.Webhook{Environment: "prod", Model: "m"}, true, true},
		"of two repositories": {storage.Webhook{Environment: "prod", Model: "n"}, false, false},
		"its kind":            {storage.Webhook{Kinds: []history.EventKind{history.EventRollback, history.EventPromote}}, true, false},
		"damage":              {storage.Webhook{Kinds: []history.EventKind{history.EventDamage}}, false, true},
	} {
		if got := c.hook.Wants(event); got != c.event {
			t.Errorf("%s: wants the event: %v, want %v", name, got, c.event)
		}
		if got := c.hook.WantsDamage(damage); got != c.damaged {
			t.Errorf("%s: wants the damage: %v, want %v", name, got, c.damaged)
		}
	}
	for name, c := range map[string]struct {
		suspended, resumed time.Time
		want               bool
	}{
		"never suspended":          {time.Time{}, time.Time{}, true},
		"suspended":                {noon, time.Time{}, false},
		"resumed before":           {noon, noon.Add(-1), false},
		"resumed at the same time": {noon, noon, false},
		"resumed after":            {noon, noon.Add(1), true},
	} {
		if got := (storage.Delivery{Suspended: c.suspended}).Active(storage.Webhook{Resumed: c.resumed}); got != c.want {
			t.Errorf("%s: active %v, want %v", name, got, c.want)
		}
	}
	last := storage.DamageRef{Found: noon, Digest: "sha256:b"}
	for name, c := range map[string]struct {
		found  time.Time
		digest registry.Digest
		want   bool
	}{
		"itself": {noon, "sha256:b", false}, "the next digest": {noon, "sha256:c", true}, "the digest before": {noon, "sha256:a", false},
		"later": {noon.Add(1), "sha256:a", true}, "earlier": {noon.Add(-1), "sha256:c", false},
	} {
		if got := last.Before(storage.Damage{Found: c.found, Digest: c.digest}); got != c.want {
			t.Errorf("damage %s: comes after %v, want %v", name, got, c.want)
		}
	}
}

// referrers gives pages of manifests, and fails on the last if it is to.
type referrers struct {
	storage.Manifests
	pages map[registry.Digest][]storage.Manifest // by the digest that they come after
	err   error
}

func (r referrers) Referrers(_ context.Context, _ string, _ registry.Digest, _ string, after registry.Digest) ([]storage.Manifest, error) {
	page, ok := r.pages[after]
	if !ok {
		return nil, r.err
	}
	return page, nil
}

// All pages are read, one after the other, until there is none or one cannot be read.
func TestAllReferrers(t *testing.T) {
	t.Parallel()
	pages := map[registry.Digest][]storage.Manifest{"": {{Digest: "a"}, {Digest: "b"}}, "b": {{Digest: "c"}}}
	for name, want := range map[string]error{"all of them": nil, "a page that cannot be read": errors.New("gone")} {
		var got []registry.Digest
		var failed error
		for m, err := range storage.AllReferrers(t.Context(), referrers{pages: pages, err: want}, "prod/m", "d", "") {
			if err != nil {
				failed = err
				continue
			}
			got = append(got, m.Digest)
		}
		if !slices.Equal(got, []registry.Digest{"a", "b", "c"}) || !errors.Is(failed, want) {
			t.Errorf("%s: %v, error %v; want a, b and c, and %v", name, got, failed, want)
		}
	}
	for m := range storage.AllReferrers(t.Context(), referrers{pages: pages}, "prod/m", "d", "") {
		if m.Digest != "a" {
			t.Errorf("%s came first or after the caller had stopped, want a alone", m.Digest)
		}
		break
	}
}

// Texts and names at their limits.
func TestNamesAtTheirLimits(t *testing.T) {
	t.Parallel()
	as := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct{ got, want bool }{
		"longest tag":             {registry.ValidTag(as(128)), true},
		"tag too long":            {registry.ValidTag(as(129)), false},
		"tag that ends in a dot":  {registry.ValidTag("a."), true},
		"tag that begins so":      {registry.ValidTag(".a"), false},
		"tag that begins with _":  {registry.ValidTag("_a"), true},
		"tag of each last letter": {registry.ValidTag("zZ9aA0"), true},
		"tag with a bracket":      {registry.ValidTag("a["), false},
		"tag with a brace":        {registry.ValidTag("a{"), false},
		"tag with an at sign":     {registry.ValidTag("a@"), false},
		"tag with a backquote":    {registry.ValidTag("a`"), false},
		"tag with a slash":        {registry.ValidTag("a/"), false},
		"tag with a colon":        {registry.ValidTag("a:"), false},
		"no tag":                  {registry.ValidTag(""), false},
		"longest repository":      {registry.ValidRepository(as(255)), true},
		"repository too long":     {registry.ValidRepository(as(256)), false},
		"longest name":            {registry.ValidateName(as(255)) == nil, true},
		"name too long":           {registry.ValidateName(as(256)) == nil, false},
		"name with an empty part": {registry.ValidateName("a//b") == nil, false},
		"longest model":           {registry.ValidateModel(as(255)) == nil, true},
		"model too long":          {registry.ValidateModel(as(256)) == nil, false},
		"longest host":            {registry.ValidateHost(as(251)+".com") == nil, true},
		"host too long":           {registry.ValidateHost(as(252)+".com") == nil, false},
		"host without a dot":      {registry.ValidateHost("registry") == nil, false},
		"localhost":               {registry.ValidateHost("localhost") == nil, true},
		"longest text":            {registry.ValidateText("x", as(registry.MaxText)) == nil, true},
		"text too long":           {registry.ValidateText("x", as(registry.MaxText+1)) == nil, false},
	} {
		if c.got != c.want {
			t.Errorf("%s: valid %v, want %v", name, c.got, c.want)
		}
	}
	for limit, want := range map[int]int{-1: 100, 0: 100, 1: 1, 999: 999, 1000: 1000, 1001: 1000} {
		if got := storage.PageLimit(limit); got != want {
			t.Errorf("limit %d: a page of %d, want %d", limit, got, want)
		}
	}
	for want, got := range map[string]string{
		"0 engines": registry.Count(0, "engine"), "1 engine": registry.Count(1, "engine"), "2 engines": registry.Count(2, "engine"),
		"1 entry": registry.Count(1, "entry", "entries"), "2 entries": registry.Count(int64(2), "entry", "entries"),
	} {
		if got != want {
			t.Errorf("counted %q, want %q", got, want)
		}
	}
}

// Constraints let in their minimum, and not what they are to be below.
func TestConstraintAtItsLimits(t *testing.T) {
	t.Parallel()
	between := artifact.Constraint{Min: "1.2", Below: "2"}
	for version, want := range map[string]bool{"1.1.9": false, "1.2": true, "1.2.0": true, "1.10": true, "1.99": true, "2": false, "2.0.0": false, "2.1": false, "v1.3": false, "": false} {
		if got := between.Allows(version); got != want {
			t.Errorf("%s allows %q: %v, want %v", between, version, got, want)
		}
	}
	for _, c := range []struct {
		constraint artifact.Constraint
		valid      bool
	}{
		{artifact.Constraint{}, false}, {artifact.Constraint{Exact: "1"}, true}, {artifact.Constraint{Exact: "1", Min: "1"}, false},
		{artifact.Constraint{Exact: "1", Below: "2"}, false}, {artifact.Constraint{Min: "1"}, true}, {artifact.Constraint{Below: "1"}, true},
		{artifact.Constraint{Min: "2", Below: "2"}, false}, {artifact.Constraint{Min: "2.0", Below: "2"}, false}, {artifact.Constraint{Min: "1.9", Below: "2"}, true},
		{artifact.Constraint{Min: "1.x"}, false}, {artifact.Constraint{Below: "1.-1"}, false}, {artifact.Constraint{Exact: "1."}, false},
	} {
		if err := c.constraint.Validate(); (err == nil) != c.valid {
			t.Errorf("%+v: error %v, valid should be %v", c.constraint, err, c.valid)
		}
	}
}

// A target asks for no fewer than nothing.
func TestTargetBounds(t *testing.T) {
	t.Parallel()
	plain := func() artifact.Target {
		return artifact.Target{V: artifact.TargetVersion, Name: "t", OS: "linux", CPU: artifact.TargetCPU{Arch: "amd64"}}
	}
	for name, c := range map[string]struct {
		edit func(r *artifact.Target)
		ok   bool
	}{
		"longest name":          {func(r *artifact.Target) { r.Name = strings.Repeat("a", 48) }, true},
		"name too long":         {func(r *artifact.Target) { r.Name = strings.Repeat("a", 49) }, false},
		"level 1":               {func(r *artifact.Target) { r.CPU.Level = "v1" }, true},
		"level 4":               {func(r *artifact.Target) { r.CPU.Level = "v4" }, true},
		"level 0":               {func(r *artifact.Target) { r.CPU.Level = "v0" }, false},
		"level 5":               {func(r *artifact.Target) { r.CPU.Level = "v5" }, false},
		"level 10":              {func(r *artifact.Target) { r.CPU.Level = "v10" }, false},
		"level of arm":          {func(r *artifact.Target) { r.CPU.Arch, r.CPU.Level = "arm64", "v1" }, false},
		"no devices, no size":   {func(r *artifact.Target) { r.Accelerator = &artifact.TargetAccelerator{} }, true},
		"fewer than 0 devices":  {func(r *artifact.Target) { r.Accelerator = &artifact.TargetAccelerator{Count: -1} }, false},
		"less than 0 memory":    {func(r *artifact.Target) { r.Accelerator = &artifact.TargetAccelerator{MemoryMiB: -1} }, false},
		"compatibility of none": {func(r *artifact.Target) { r.Compatibility = artifact.CompatibilityExact }, false},
		"compatibility": {func(r *artifact.Target) {
			r.Accelerator, r.Compatibility = &artifact.TargetAccelerator{}, artifact.CompatibilityExact
		}, true},
		"an unknown one":   {func(r *artifact.Target) { r.Accelerator, r.Compatibility = &artifact.TargetAccelerator{}, "about" }, false},
		"a broken runtime": {func(r *artifact.Target) { r.Runtimes = map[string]artifact.Constraint{"x": {}} }, false},
	} {
		target := plain()
		c.edit(&target)
		if err := target.Validate(); (err == nil) != c.ok || err != nil && !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%s: error %v, valid should be %v", name, err, c.ok)
		}
	}
}

// A device has at least what the target asks for.
func TestMatchDevicesAtTheLimits(t *testing.T) {
	t.Parallel()
	target := artifact.Target{V: artifact.TargetVersion, Accelerator: &artifact.TargetAccelerator{
		Vendor: "nvidia", Product: "L4", Arch: "sm_89", MemoryMiB: 1000, Count: 2, Driver: &artifact.Constraint{Min: "550"}}}
	device := artifact.NodeAccelerator{Vendor: "nvidia", Product: "L4", Arch: "sm_89", MemoryMiB: 1000, Driver: "550.1"}
	for name, c := range map[string]struct {
		compatibility artifact.Compatibility
		devices       func() []artifact.NodeAccelerator
		want          string // requirement that is not met
	}{
		"two such devices":   {"", func() []artifact.NodeAccelerator { return []artifact.NodeAccelerator{device, device} }, ""},
		"three":              {"", func() []artifact.NodeAccelerator { return []artifact.NodeAccelerator{device, device, device} }, ""},
		"one":                {"", func() []artifact.NodeAccelerator { return []artifact.NodeAccelerator{device} }, "accelerator.count"},
		"none":               {"", func() []artifact.NodeAccelerator { return nil }, "accelerator"},
		"one of less memory": {"", func() []artifact.NodeAccelerator { d := device; d.MemoryMiB--; return []artifact.NodeAccelerator{d, d} }, "accelerator.memoryMiB"},
		"another product": {"", func() []artifact.NodeAccelerator {
			d := device
			d.Product = "L40"
			return []artifact.NodeAccelerator{d, d}
		}, "accelerator.product"},
		"another one, exact": {artifact.CompatibilityExact, func() []artifact.NodeAccelerator {
			d := device
			d.Product = "L40"
			return []artifact.NodeAccelerator{d, d}
		}, "accelerator.product"},
		"another one of the same": {artifact.CompatibilityComputeCapability, func() []artifact.NodeAccelerator {
			d := device
			d.Product = "L40"
			return []artifact.NodeAccelerator{d, d}
		}, ""},
		"a later one of them": {artifact.CompatibilityComputeCapability, func() []artifact.NodeAccelerator {
			d := device
			d.Arch = "sm_90"
			return []artifact.NodeAccelerator{d, d}
		}, "accelerator.arch"},
		"a later one": {artifact.CompatibilityVersionCompatible, func() []artifact.NodeAccelerator {
			d := device
			d.Arch = "sm_90"
			return []artifact.NodeAccelerator{d, d}
		}, ""},
		"the same one": {artifact.CompatibilityVersionCompatible, func() []artifact.NodeAccelerator { return []artifact.NodeAccelerator{device, device} }, ""},
		"an earlier one": {artifact.CompatibilityVersionCompatible, func() []artifact.NodeAccelerator {
			d := device
			d.Arch = "sm_88"
			return []artifact.NodeAccelerator{d, d}
		}, "accelerator.arch"},
		"an earlier driver": {"", func() []artifact.NodeAccelerator {
			d := device
			d.Driver = "549.9"
			return []artifact.NodeAccelerator{d, d}
		}, "accelerator.driver"},
		"another vendor": {"", func() []artifact.NodeAccelerator {
			d := device
			d.Vendor = "amd"
			return []artifact.NodeAccelerator{d, d}
		}, "accelerator.vendor"},
		"the best of two is told of": {"", func() []artifact.NodeAccelerator {
			d, e := device, device
			d.Vendor, d.Product, e.MemoryMiB = "amd", "MI300", 999
			return []artifact.NodeAccelerator{d, e}
		}, "accelerator.memoryMiB"},
	} {
		asked := target
		asked.Compatibility = c.compatibility
		var got []string
		for _, m := range asked.Match(artifact.Node{Accelerators: c.devices()}, artifact.Runtime{}) {
			got = append(got, m.Requirement)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: does not meet %q, want %q", name, got, c.want)
		}
	}
}

// Ignored evidence is counted, and the first of it is described.
func TestIgnoredEvidenceAtItsLimit(t *testing.T) {
	t.Parallel()
	var e evidence.IgnoredEvidence
	for range evidence.MaxIgnored - 1 {
		e.Ignore(evidence.Ignored{Reason: "x"})
	}
	e.Ignore(evidence.Ignored{Reason: strings.Repeat("r", 401)}, evidence.Ignored{Reason: "beyond"})
	if len(e.Ignored) != evidence.MaxIgnored || e.IgnoredCount != evidence.MaxIgnored+1 {
		t.Fatalf("%d described of %d, want %d of %d", len(e.Ignored), e.IgnoredCount, evidence.MaxIgnored, evidence.MaxIgnored+1)
	}
	if got, want := e.Ignored[evidence.MaxIgnored-1].Reason, strings.Repeat("r", 400)+"..."; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
	var sum evidence.IgnoredEvidence
	sum.Ignore(evidence.Ignored{Reason: strings.Repeat("r", 400)})
	if got := sum.Ignored[0].Reason; len(got) != 400 {
		t.Errorf("a reason of 400 bytes became one of %d", len(got))
	}
	sum.IgnoreAll(e)
	if len(sum.Ignored) != evidence.MaxIgnored || sum.IgnoredCount != evidence.MaxIgnored+2 {
		t.Errorf("%d described of %d, want %d of %d", len(sum.Ignored), sum.IgnoredCount, evidence.MaxIgnored, evidence.MaxIgnored+2)
	}
}

// Names and options of execution providers at their limits.
func TestProviderBounds(t *testing.T) {
	t.Parallel()
	options := func(n int) map[string]string {
		all := make(map[string]string)
		for i := range n {
			all["o"+strings.Repeat("x", i)] = "1"
		}
		return all
	}
	one := func(key, value string) artifact.Provider {
		return artifact.Provider{Name: "CUDAExecutionProvider", Options: map[string]string{key: value}}
	}
	for name, c := range map[string]struct {
		provider artifact.Provider
		ok       bool
	}{
		"no options":          {artifact.Provider{Name: "CPUExecutionProvider"}, true},
		"options of the CPU":  {artifact.Provider{Name: "CPUExecutionProvider", Options: options(1)}, false},
		"most options":        {artifact.Provider{Name: "CUDAExecutionProvider", Options: options(32)}, true},
		"one too many":        {artifact.Provider{Name: "CUDAExecutionProvider", Options: options(33)}, false},
		"longest key":         {one(strings.Repeat("k", 64), "1"), true},
		"key too long":        {one(strings.Repeat("k", 65), "1"), false},
		"longest value":       {one("k", strings.Repeat("v", 256)), true},
		"value too long":      {one("k", strings.Repeat("v", 257)), false},
		"no value":            {one("k", ""), false},
		"a blank and a tilde": {one("k", " ~"), true},
		"a control character": {one("k", "\x1f"), false},
		"beyond ASCII":        {one("k", "\x7f"), false},
		"a path":              {one("k", "a/b"), false},
		"a Windows path":      {one("k", `a\b`), false},
		"an address":          {one("user_compute_stream", "1"), false},
		"another name":        {artifact.Provider{Name: "CUDA"}, false},
	} {
		if err := c.provider.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: error %v, valid should be %v", name, err, c.ok)
		}
	}
}

// A retired key counts for what was recorded before it was retired, and not at that moment.
func TestRetiredKeyAtItsTime(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_000, 0)
	r := artifact.Release{Digest: digest.FromString("release")}
	for name, c := range map[string]struct {
		recorded int64
		when     time.Time
		counts   bool
	}{
		"before": {1, at.Add(-1), true}, "at that moment": {1, at, false}, "after": {1, at.Add(1), false}, "not recorded": {0, at.Add(-1), false},
	} {
		claim := evidence.Claim{
			Statement: evidence.Statement{PredicateType: evidence.PredicateSign, Subject: []evidence.StatementSubject{{Digest: evidence.NewDigestSet(r.Digest)}}},
			Subject:   r.Digest, Signer: "key", Roles: []evidence.Role{evidence.RoleBuilder}, Key: evidence.KeyRetired, RetiredAt: at,
			Recorded: c.recorded, RecordedAt: c.when,
		}
		counted, ignored := evidence.Accept(r, []evidence.Claim{claim})
		if (len(counted) == 1) != c.counts {
			t.Errorf("%s: %d count, ignored %+v; want it to count: %v", name, len(counted), ignored, c.counts)
		}
	}
}

// Clients get the outermost text that was written for them, or the text of the error.
func TestTextForClients(t *testing.T) {
	t.Parallel()
	plain := registry.Errorf(registry.CodeUnavailable, "db.internal: refused")
	inner := registry.ForClients(plain, "the catalog does not answer")
	for name, c := range map[string]struct {
		err  error
		want string
		all  bool
	}{
		"its own text":          {plain, "db.internal: refused", true},
		"a text for clients":    {inner, "the catalog does not answer", false},
		"the outermost of two":  {registry.ForClients(inner, "try again"), "try again", false},
		"below another message": {registry.Errorf(registry.CodeUnavailable, "read /var/lib: %w", inner), "the catalog does not answer", false},
	} {
		if got, all := registry.TextForClients(c.err); got != c.want || all != c.all {
			t.Errorf("%s: %q (all: %v), want %q (%v)", name, got, all, c.want, c.all)
		}
	}
	if registry.ForClients(nil, "x") != nil || registry.WithHint(nil, "x") != nil {
		t.Error("no error became one")
	}
}

// Signed JSON nests up to 64 deep, and is whole.
func TestSignedJSONAtItsLimits(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string {
		return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	for name, c := range map[string]struct {
		text string
		says string // empty: it is accepted
	}{
		"deepest":                 {nested(64), ""},
		"a level more":            {nested(65), "deeper than 64"},
		"objects, a level more":   {strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "deeper than 64"},
		"deepest objects":         {strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64), ""},
		"no value":                {`{"a":}`, "invalid character"},
		"a value cut short":       {`{"a":[1`, "EOF"},
		"a list with a bad value": {`{"a":[1,x]}`, "invalid character"},
		"two equal keys":          {`{"a":[{"b":1,"b":2}]}`, "twice"},
		"equal keys apart":        {`{"a":[{"b":1},{"b":2}]}`, ""},
	} {
		err := registry.CheckJSON([]byte(c.text))
		if c.says == "" && err != nil {
			t.Errorf("%s: error %v, want none", name, err)
		}
		if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.says)
		}
	}
}

// A set of digests names one digest in its own form alone: lower-case hex of its full length.
func TestDigestSetNames(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0a9f", 16)
	for name, c := range map[string]struct {
		in   evidence.DigestSet
		of   registry.Digest
		want bool
	}{
		"the digest":         {evidence.DigestSet{"sha256": hex}, registry.Digest("sha256:" + hex), true},
		"another algorithm":  {evidence.DigestSet{"sha512": hex}, registry.Digest("sha256:" + hex), false},
		"upper case":         {evidence.DigestSet{"sha256": strings.ToUpper(hex)}, registry.Digest("sha256:" + strings.ToUpper(hex)), false},
		"before the digits":  {evidence.DigestSet{"sha256": "/" + hex[1:]}, registry.Digest("sha256:/" + hex[1:]), false},
		"after the digits":   {evidence.DigestSet{"sha256": ":" + hex[1:]}, registry.Digest("sha256::" + hex[1:]), false},
		"before the letters": {evidence.DigestSet{"sha256": "`" + hex[1:]}, registry.Digest("sha256:`" + hex[1:]), false},
		"after the letters":  {evidence.DigestSet{"sha256": "g" + hex[1:]}, registry.Digest("sha256:g" + hex[1:]), false},
		"too short":          {evidence.DigestSet{"sha256": hex[1:]}, registry.Digest("sha256:" + hex[1:]), false},
		"nothing":            {evidence.DigestSet{"sha256": ""}, "sha256:", false},
		"an unknown one":     {evidence.DigestSet{"own": "x"}, "own:x", false},
	} {
		if got := c.in.Names(c.of); got != c.want {
			t.Errorf("%s: named %v, want %v", name, got, c.want)
		}
	}
	if got := evidence.NewDigestSet(""); got != nil {
		t.Errorf("the set of no digest is %v, want none", got)
	}
	if got := (evidence.DigestSet{"sha512": "x"}).SHA256(); got != "" {
		t.Errorf("the SHA-256 of another digest is %q, want none", got)
	}
}
