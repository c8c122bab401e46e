package promoting

import (
	"fmt"
	"slices"
	"strings"

	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/policy"
)

// requirementRow are requirements of one state and detail, which are shown once.
type requirementRow struct {
	state, detail   string
	names, subjects []string
}

// requirementsText lists the requirements that are not met, and counts the others. all lists each of them.
func requirementsText(d policy.Decision, all bool) string {
	var open, met []policy.Requirement
	for _, state := range []string{"refused", "unmet", "skipped", "met"} {
		for _, r := range d.Requirements {
			switch {
			case r.State() != state:
			case r.Met:
				met = append(met, r)
			default:
				open = append(open, r)
			}
		}
	}
	var rows [][]string
	for _, row := range together(open) {
		rows = append(rows, []string{tone(row.state).Sign(), stateText(row.state), strings.Join(row.names, ", ") + " of " + subjectsText(row.subjects, d) + ": " + row.detail})
	}
	if all {
		for _, r := range met {
			rows = append(rows, []string{ui.Good.Sign(), stateText(r.State()), r.Name + " of " + r.Subject + ": " + r.Detail})
		}
	}
	return ui.Table(rows) + metText(met, d)
}

// together merges requirements of a subject that have the same state and detail, and then subjects of the same ones.
func together(all []policy.Requirement) (rows []requirementRow) {
	for _, r := range all {
		same := func(row requirementRow) bool {
			return row.state == r.State() && row.detail == r.Detail && row.subjects[0] == r.Subject
		}
		if at := slices.IndexFunc(rows, same); at >= 0 {
			rows[at].names = append(rows[at].names, r.Name)
			continue
		}
		rows = append(rows, requirementRow{r.State(), r.Detail, []string{r.Name}, []string{r.Subject}})
	}
	var merged []requirementRow
	for _, row := range rows {
		same := func(m requirementRow) bool {
			return m.state == row.state && m.detail == row.detail && slices.Equal(m.names, row.names)
		}
		if at := slices.IndexFunc(merged, same); at >= 0 {
			merged[at].subjects = append(merged[at].subjects, row.subjects...)
			continue
		}
		merged = append(merged, row)
	}
	return merged
}

// fewSubjects is how many subjects are named where they are all engines of a release.
const fewSubjects = 3

// subjectsText names subjects, and counts them where all engines are meant.
func subjectsText(subjects []string, d policy.Decision) string {
	engines := make(map[string]bool)
	for _, r := range d.Requirements {
		if r.Name == policy.RequireSignature && r.Subject != "release" {
			engines[r.Subject] = true
		}
	}
	if len(subjects) > fewSubjects && len(subjects) == len(engines) {
		return fmt.Sprintf("all %d engines", len(engines))
	}
	return strings.Join(subjects, ", ")
}

// metText counts the requirements that are met, by name.
func metText(met []policy.Requirement, d policy.Decision) string {
	var names []string
	count := make(map[string]int)
	for _, r := range met {
		if count[r.Name]++; count[r.Name] == 1 {
			names = append(names, r.Name)
		}
	}
	of := make(map[string]int)
	for _, r := range d.Requirements {
		of[r.Name]++
	}
	for i, name := range names {
		switch {
		case count[name] < of[name]:
			names[i] += fmt.Sprintf(" %d of %d", count[name], of[name])
		case of[name] > 1:
			names[i] += fmt.Sprintf(" %d", of[name])
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %s met: ", len(met), registry.Count(len(d.Requirements), "requirement"))
	if len(met) == len(d.Requirements) {
		text = "all " + registry.Count(len(met), "requirement") + " met: "
	}
	return ui.Hanging(ui.Good.Sign()+"  ", text+strings.Join(names, ", ")) + "\n"
}

func tone(state string) ui.Tone {
	switch state {
	case "met":
		return ui.Good
	case "skipped":
		return ui.Unsure
	}
	return ui.Bad
}

// stateText writes a state that is in the way in large letters.
func stateText(state string) string {
	if state == "met" || state == "skipped" {
		return tone(state).Mark(state)
	}
	return tone(state).Mark(strings.ToUpper(state))
}
