package policy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
)

// instant reads an RFC 3339 time.
func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// weekly is a window between two times of a week in Berlin.
func weekly(t *testing.T, from, until string) policy.Freeze {
	t.Helper()
	w := policy.WeeklyWindow{Zone: "Europe/Berlin"}
	for text, into := range map[string]*policy.WeekTime{from: &w.From, until: &w.Until} {
		if err := into.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return policy.Freeze{Name: "weekend", Weekly: &w}
}

// In 2026 the clocks of Berlin go forward on 29 March from 02:00 to 03:00, and back on 25 October from
// 03:00 to 02:00.
func TestFreeze(t *testing.T) {
	t.Parallel()
	fair := policy.Freeze{Name: "fair", From: instant(t, "2026-11-27T00:00:00Z"), Until: instant(t, "2026-11-30T09:00:00+01:00")}
	for name, c := range map[string]struct {
		window policy.Freeze
		now    string
		frozen bool
		change string
	}{
		"before it":                        {fair, "2026-11-26T23:59:59.999999Z", false, "2026-11-27T00:00:00Z"},
		"its first instant":                {fair, "2026-11-27T00:00:00Z", true, "2026-11-30T08:00:00Z"},
		"its last instant":                 {fair, "2026-11-30T07:59:59.999999Z", true, "2026-11-30T08:00:00Z"},
		"after it":                         {fair, "2026-11-30T08:00:00Z", false, ""},
		"before a weekend":                 {weekly(t, "Fri 18:00", "Mon 06:00"), "2026-11-20T16:59:59Z", false, "2026-11-20T17:00:00Z"},
		"its first minute":                 {weekly(t, "Fri 18:00", "Mon 06:00"), "2026-11-20T17:00:00Z", true, "2026-11-23T05:00:00Z"},
		"in the night to Sunday":           {weekly(t, "Fri 18:00", "Mon 06:00"), "2026-11-21T23:30:00Z", true, "2026-11-23T05:00:00Z"},
		"its last second":                  {weekly(t, "Fri 18:00", "Mon 06:00"), "2026-11-23T04:59:59Z", true, "2026-11-23T05:00:00Z"},
		"after a weekend":                  {weekly(t, "Fri 18:00", "Mon 06:00"), "2026-11-23T05:00:00Z", false, "2026-11-27T17:00:00Z"},
		"within a week":                    {weekly(t, "Mon 09:00", "Mon 17:00"), "2026-11-23T08:00:00Z", true, "2026-11-23T16:00:00Z"},
		"a week later":                     {weekly(t, "Mon 09:00", "Mon 17:00"), "2026-11-23T16:00:00Z", false, "2026-11-30T08:00:00Z"},
		"a weekend with 47 hours":          {weekly(t, "Fri 18:00", "Mon 06:00"), "2026-03-27T17:00:00Z", true, "2026-03-30T04:00:00Z"},
		"a weekend with 49 hours":          {weekly(t, "Fri 18:00", "Mon 06:00"), "2026-10-23T16:00:00Z", true, "2026-10-26T05:00:00Z"},
		"a beginning that clocks skip":     {weekly(t, "Sun 02:30", "Sun 05:00"), "2026-03-29T00:59:59Z", false, "2026-03-29T01:00:00Z"},
		"right after they skipped it":      {weekly(t, "Sun 02:30", "Sun 05:00"), "2026-03-29T01:00:00Z", true, "2026-03-29T03:00:00Z"},
		"an end that clocks skip":          {weekly(t, "Sun 01:00", "Sun 02:30"), "2026-03-29T00:30:00Z", true, "2026-03-29T01:00:00Z"},
		"a beginning that they show twice": {weekly(t, "Sun 02:30", "Sun 05:00"), "2026-10-25T00:29:59Z", false, "2026-10-25T00:30:00Z"},
		"from its first time":              {weekly(t, "Sun 02:30", "Sun 05:00"), "2026-10-25T00:30:00Z", true, "2026-10-25T01:00:00Z"},
		"from its second time":             {weekly(t, "Sun 02:30", "Sun 05:00"), "2026-10-25T01:30:00Z", true, "2026-10-25T04:00:00Z"},
		"the zero window":                  {policy.Freeze{}, "2026-11-27T00:00:00Z", true, ""},
		"a zone that does not exist":       {policy.Freeze{Name: "x", Weekly: &policy.WeeklyWindow{Until: 1, Zone: "Europe/Atlantis"}}, "2026-11-27T00:00:00Z", true, ""},
		"the zone of the machine":          {policy.Freeze{Name: "x", Weekly: &policy.WeeklyWindow{Until: 1, Zone: "Local"}}, "2026-11-27T00:00:00Z", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frozen, change := c.window.InForce(instant(t, c.now))
			shown := ""
			if !change.IsZero() {
				shown = change.UTC().Format(time.RFC3339)
			}
			if frozen != c.frozen || shown != c.change {
				t.Errorf("at %s: frozen %t until %q, want %t until %q", c.now, frozen, shown, c.frozen, c.change)
			}
		})
	}
}

// Nothing changes before the instant at which InForce says that it does, and then it does.
func TestFreezeChanges(t *testing.T) {
	t.Parallel()
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca", "UTC"}
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfNDistinct(rapid.IntRange(0, 7*24*60-1), 2, 2, func(i int) int { return i }).Draw(t, "times")
		f := policy.Freeze{Name: "x", Weekly: &policy.WeeklyWindow{From: policy.WeekTime(times[0]),
			Until: policy.WeekTime(times[1]), Zone: rapid.SampledFrom(zones).Draw(t, "zone")}}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 400*24*60*60).Draw(t, "seconds")) * time.Second)
		frozen, change := f.InForce(now)
		if !change.After(now) || change.After(now.Add(9*24*time.Hour)) {
			t.Fatalf("%s at %s: changes at %s", f, now, change)
		}
		for at := now; at.Before(change); at = at.Add(7 * time.Minute) {
			if is, _ := f.InForce(at); is != frozen {
				t.Fatalf("%s at %s: frozen %t until %s, but %t at %s", f, now, frozen, change, is, at)
			}
		}
		if is, _ := f.InForce(change); is == frozen {
			t.Fatalf("%s at %s: frozen %t, and still at %s", f, now, frozen, change)
		}
	})
}

// A policy with a freeze refuses while it lasts, and while the time is not known.
func TestFreezeRequirement(t *testing.T) {
	t.Parallel()
	r := sample()
	demands := func() policy.Policy {
		return policy.Policy{Require: policy.DefaultRequire(), Freeze: []policy.Freeze{
			{Name: "night", From: hours(20), Until: hours(22)}, {Name: "noon", From: hours(12), Until: hours(13)}},
			Promotion: policy.PromotionContext{Environment: "prod", Now: hours(11)}}
	}
	for name, c := range map[string]struct {
		edit  func(*policy.PromotionContext)
		want  string // of the refusal; empty: it is met
		until time.Time
	}{
		"before":  {func(*policy.PromotionContext) {}, "", hours(12)},
		"between": {func(p *policy.PromotionContext) { p.Now = hours(13) }, "", hours(20)},
		"after":   {func(p *policy.PromotionContext) { p.Now = hours(23) }, "", time.Time{}},
		"in it": {func(p *policy.PromotionContext) { p.Now = hours(12) },
			"no-freeze of release: noon (2026-01-01T12:00:00Z until 2026-01-01T13:00:00Z) of prod lasts until 2026-01-01T13:00:00Z: wait", hours(20)},
		"without a time":          {func(p *policy.PromotionContext) { p.Now = time.Time{} }, "the time of the promotion is not known", time.Time{}},
		"a clock a little behind": {func(p *policy.PromotionContext) { p.Newest = hours(11).Add(5 * time.Minute) }, "", hours(12)},
		"a clock turned back": {func(p *policy.PromotionContext) { p.Newest = hours(11).Add(5*time.Minute + 1) },
			"the clock here says 2026-01-01T11:00:00Z, but the newest event of the history is of 2026-01-01T11:05:00Z", time.Time{}},
		"there already, in it":     {func(p *policy.PromotionContext) { p.Now, p.Head = hours(12), r.Digest }, "", time.Time{}},
		"replayed, in it":          {func(p *policy.PromotionContext) { p.Now, p.Replay = hours(12), true }, "", time.Time{}},
		"the head of no placement": {func(p *policy.PromotionContext) { *p = policy.PromotionContext{Head: r.Digest} }, "not known", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := demands()
			c.edit(&p.Promotion)
			d := p.Check(r, enough(r))
			if got := unmet(d); d.Allowed() != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("unmet %q, want %q", got, c.want)
			}
			if !d.Until.Equal(c.until) {
				t.Errorf("the decision is for the time until %s, want %s", d.Until, c.until)
			}
		})
	}
}

// An approval that expires bounds the time for which a decision is made.
func TestDecisionUntilAnApprovalExpires(t *testing.T) {
	t.Parallel()
	r := sample()
	expires := func(hour int) func(*evidence.Approval) {
		return func(a *evidence.Approval) { a.ExpiresOn = hours(hour) }
	}
	d := asking(2).Check(r, append(enough(r), approval(r, "first", 1, expires(15)), approval(r, "second", 2, expires(14))))
	if !d.Allowed() || !d.Until.Equal(hours(14)) {
		t.Errorf("allowed %t until %s, want until %s", d.Allowed(), d.Until, hours(14))
	}
}

func TestFreezesAreValid(t *testing.T) {
	t.Parallel()
	for want, f := range map[string]policy.Freeze{
		"want a lower-case name":        {Name: "Fair"},
		"want a later instant":          {Name: "x", From: hours(1), Until: hours(1)},
		"so it has no instants":         {Name: "x", From: hours(1), Weekly: &policy.WeeklyWindow{Until: 1, Zone: "UTC"}},
		"want two times of a week":      {Name: "x", Weekly: &policy.WeeklyWindow{Zone: "UTC"}},
		`time zone "" is not known`:     {Name: "x", Weekly: &policy.WeeklyWindow{Until: 1}},
		`zone "../etc" is not known`:    {Name: "x", Weekly: &policy.WeeklyWindow{Until: 1, Zone: "../etc"}},
		"both Sun 00:00: want two time": {Name: "x", Weekly: &policy.WeeklyWindow{Zone: "Europe/Berlin"}},
	} {
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) || !registry.HasCode(err, registry.CodeInvalid) {
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}

func TestWeekTimes(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "Fri", "Fri 6:00", "fri 18:00", "Friday 18:00",
		"Fri 24:00", "Fri 18:00 ", "Fri  18:00", "Fri 18:60", "Fri 18:00:00"} {
		if at, err := policy.ParseWeekTime(text); err == nil {
			t.Errorf("%q is read as %s", text, at)
		}
	}
	f := weekly(t, "Fri 18:00", "Sun 00:00")
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var again policy.Freeze
	if err := json.Unmarshal(data, &again); err != nil || again.String() != f.String() ||
		f.String() != "weekend (Fri 18:00 until Sun 00:00 Europe/Berlin)" {
		t.Errorf("%s is read as %s, error %v", data, again, err)
	}
}
