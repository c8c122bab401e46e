package environments

import (
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
)

// freezes are windows in which nothing is promoted.
type freezes []policy.Freeze

// writtenFreeze is one window: between instants or, with a zone, between times of a week.
type writtenFreeze struct {
	Name  string `yaml:"name,required"`
	From  string `yaml:"from,required"`
	Until string `yaml:"until,required"`
	Zone  string `yaml:"zone"`
}

// DecodeYAML reads the list.
func (fs *freezes) DecodeYAML(n *strictyaml.Node) {
	if n.Kind() != strictyaml.Sequence || len(n.Items()) == 0 {
		n.Problemf("freeze is %s: want a list of windows, such as [{name: weekend, from: Fri 18:00, until: Mon 06:00, zone: Europe/Berlin}]", n.Kind())
		return
	}
	for _, item := range n.Items() {
		var w writtenFreeze
		item.Decode(&w)
		if w.Name == "" || w.From == "" || w.Until == "" {
			continue // reported
		}
		f, err := w.freeze()
		if err == nil {
			err = f.Validate()
		}
		if err != nil {
			item.Problemf("%s", err)
			continue
		}
		*fs = append(*fs, f)
	}
}

func (w writtenFreeze) freeze() (policy.Freeze, error) {
	f := policy.Freeze{Name: w.Name}
	if w.Zone == "" {
		var problem error
		f.From, problem = w.instant(w.From)
		if problem == nil {
			f.Until, problem = w.instant(w.Until)
		}
		return f, problem
	}
	from, err := policy.ParseWeekTime(w.From)
	if err != nil {
		return f, registry.Errorf(registry.CodeInvalid, "freeze %.40s: with zone it is weekly: %w", w.Name, err)
	}
	until, err := policy.ParseWeekTime(w.Until)
	if err != nil {
		return f, registry.Errorf(registry.CodeInvalid, "freeze %.40s: with zone it is weekly: %w", w.Name, err)
	}
	f.Weekly = &policy.WeeklyWindow{From: from, Until: until, Zone: w.Zone}
	return f, nil
}

func (w writtenFreeze) instant(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, registry.Errorf(registry.CodeInvalid, "freeze %.40s: %.60q: want an instant such as 2026-12-24T18:00:00+01:00, "+
			"or with zone a time of a week such as Fri 18:00", w.Name, text)
	}
	return at, nil
}
