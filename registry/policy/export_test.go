package policy

import (
	"cmp"

	"mlpromote.dev/mlpromote/registry/evidence"
)

// RequirementRow is what tests see of a row of requirements.
type RequirementRow struct {
	Name, Words, Per, Command, NoCommand, Hint string
	Role                                       evidence.Role
	Listed, Asked, Skippable, Objects          bool
	Items                                      []string
}

// RequirementRows returns the rows of all requirements.
func RequirementRows() []RequirementRow {
	var all []RequirementRow
	for _, row := range requirementRows() {
		all = append(all, RequirementRow{Name: row.name, Words: row.words, Per: string(row.judge.per), Command: row.command, NoCommand: row.noCommand,
			Hint: row.hint, Role: cmp.Or(row.role, row.awaits.role), Listed: row.usual || row.listed, Asked: row.common || row.follows != nil || row.name == requireQuarantine,
			Skippable: row.skippable, Objects: row.objects, Items: row.items})
	}
	return all
}
