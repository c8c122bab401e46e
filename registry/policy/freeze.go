package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones of freezes, on machines without them

	"mlpromote.dev/mlpromote/registry"
)

// Freeze is a window in which nothing is promoted to an environment: once, between two instants, or
// every week by the clock of a time zone. The zero Freeze is refused by [Freeze.Validate].
type Freeze struct {
	Name string `json:"name"`
	// From and Until bound a window that does not recur. It includes From and excludes Until.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Weekly is a window that recurs; nil for one that does not.
	Weekly *WeeklyWindow `json:"weekly,omitempty"`
}

// WeeklyWindow is the part of each week in which the clocks of a time zone show From or later, and
// not yet Until. It goes by what clocks show, also on days on which they are changed.
type WeeklyWindow struct {
	From  WeekTime `json:"from"`
	Until WeekTime `json:"until"`
	Zone  string   `json:"zone"` // of the IANA time zone database, such as Europe/Berlin
}

// WeekTime is a minute of the week: 0 is Sunday 00:00. As text it is "Fri 18:00".
type WeekTime int

const (
	minutesPerDay  = 24 * 60
	minutesPerWeek = 7 * minutesPerDay
)

// ParseWeekTime reads "Fri 18:00". Errors: CodeInvalid.
func ParseWeekTime(text string) (WeekTime, error) {
	day, clock, _ := strings.Cut(text, " ")
	at, err := time.Parse("15:04", clock)
	for d := time.Sunday; d <= time.Saturday; d++ {
		if err == nil && len(clock) == len("15:04") && day == d.String()[:3] {
			return weekTime(d, at), nil
		}
	}
	return 0, registry.Errorf(registry.CodeInvalid, "%.40q is no time of a week: want a day and a time, such as Fri 18:00", text)
}

func weekTime(day time.Weekday, clock time.Time) WeekTime {
	return WeekTime(int(day)*minutesPerDay + clock.Hour()*60 + clock.Minute())
}

// String returns the form that [ParseWeekTime] reads.
func (w WeekTime) String() string {
	minute := int(w) % minutesPerDay
	return fmt.Sprintf("%.3s %02d:%02d", time.Weekday(int(w)/minutesPerDay).String(), minute/60, minute%60)
}

// MarshalText returns the form of String.
func (w WeekTime) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the form of String.
func (w *WeekTime) UnmarshalText(text []byte) (err error) {
	*w, err = ParseWeekTime(string(text))
	return err
}

// Validate checks that the window has a name, an extent and a known time zone. Errors: CodeInvalid.
func (f Freeze) Validate() error {
	if !registry.NamePattern.MatchString(f.Name) {
		return registry.Errorf(registry.CodeInvalid, "freeze %.40q: want a lower-case name, such as weekend", f.Name)
	}
	w := f.Weekly
	if w == nil {
		if f.From.IsZero() || !f.Until.After(f.From) {
			return registry.Errorf(registry.CodeInvalid, "freeze %s: until %s is not after from %s: want a later instant", f.Name, registry.UTC(f.Until), registry.UTC(f.From))
		}
		return nil
	}
	inWeek := func(t WeekTime) bool { return t >= 0 && t < minutesPerWeek }
	switch {
	case !f.From.IsZero() || !f.Until.IsZero():
		return registry.Errorf(registry.CodeInvalid, "freeze %s: it is weekly, so it has no instants", f.Name)
	case !inWeek(w.From) || !inWeek(w.Until) || w.From == w.Until:
		return registry.Errorf(registry.CodeInvalid, "freeze %s: from and until are both %s: want two times of a week", f.Name, w.From)
	}
	if _, err := w.location(); err != nil {
		return registry.Errorf(registry.CodeInvalid, "freeze %s: time zone %.40q is not known: want a name such as Europe/Berlin or UTC", f.Name, w.Zone)
	}
	return nil
}

// location finds the time zone. "" and "Local", which depend on the machine, are refused.
func (w WeeklyWindow) location() (*time.Location, error) {
	if w.Zone == "" || w.Zone == "Local" {
		return nil, registry.Errorf(registry.CodeInvalid, "time zone %q", w.Zone)
	}
	return time.LoadLocation(w.Zone)
}

// String describes the window: "weekend (Fri 18:00 until Mon 06:00 Europe/Berlin)".
func (f Freeze) String() string {
	if w := f.Weekly; w != nil {
		return fmt.Sprintf("%s (%s until %s %s)", f.Name, w.From, w.Until, w.Zone)
	}
	return fmt.Sprintf("%s (%s until %s)", f.Name, f.From.Format(time.RFC3339), f.Until.Format(time.RFC3339))
}

// InForce reports whether the window includes an instant. change is the first later instant at
// which that is otherwise; zero if it stays so. A window that is not valid is always in force.
func (f Freeze) InForce(now time.Time) (frozen bool, change time.Time) {
	if f.Validate() != nil {
		return true, time.Time{}
	}
	if f.Weekly != nil {
		return f.Weekly.inForce(now)
	}
	switch {
	case now.Before(f.From):
		return false, f.From
	case now.Before(f.Until):
		return true, f.Until
	}
	return false, time.Time{}
}

// inForce looks at each instant at which clocks reach a bound of the window or are changed.
func (w WeeklyWindow) inForce(now time.Time) (bool, time.Time) {
	zone, err := w.location()
	if err != nil {
		return true, time.Time{}
	}
	now = now.In(zone)
	frozen := w.includes(now)
	for t := now; ; {
		next := nextShown(t, w.From)
		if until := nextShown(t, w.Until); until.Before(next) {
			next = until
		}
		if _, changed := t.ZoneBounds(); !changed.IsZero() && changed.Before(next) {
			next = changed.In(zone)
		}
		if t = next; w.includes(t) != frozen {
			return frozen, t
		}
	}
}

// includes reports whether a clock that shows t is within the window.
func (w WeeklyWindow) includes(t time.Time) bool {
	at := weekTime(t.Weekday(), t)
	if w.From < w.Until {
		return at >= w.From && at < w.Until
	}
	return at >= w.From || at < w.Until
}

// nextShown returns an instant after t, in the zone of t, at which clocks show a time of the week,
// or are changed past it. Of a time that clocks show twice it is the first after t.
func nextShown(t time.Time, w WeekTime) time.Time {
	y, m, d := t.Date()
	for days := range 15 {
		shown := time.Date(y, m, d+days, 0, int(w)%minutesPerDay, 0, 0, time.UTC)
		if int(shown.Weekday()) != int(w)/minutesPerDay {
			continue
		}
		var first time.Time
		for _, near := range []time.Time{shown.AddDate(0, 0, -1), shown.AddDate(0, 0, 1)} {
			_, offset := near.In(t.Location()).Zone()
			at := shown.Add(-time.Duration(offset) * time.Second).In(t.Location())
			if at.After(t) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
		if !first.IsZero() {
			return first
		}
	}
	return t.AddDate(0, 0, 1) // unreachable: every week has each of its times
}

// validateFreezes checks each window, and that no two have one name. Errors: CodeInvalid.
func validateFreezes(all []Freeze) error {
	for i, f := range all {
		if err := f.Validate(); err != nil {
			return err
		}
		if slices.ContainsFunc(all[:i], func(o Freeze) bool { return o.Name == f.Name }) {
			return registry.Errorf(registry.CodeInvalid, "freeze %s is defined twice", f.Name)
		}
	}
	return nil
}
