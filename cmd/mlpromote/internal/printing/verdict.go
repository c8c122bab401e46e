package printing

import (
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/registry/evidence"
)

// Tone is how good a verdict is. One that decides nothing has none.
func Tone(v evidence.Verdict) ui.Tone {
	switch v {
	case evidence.VerdictPass:
		return ui.Good
	case evidence.VerdictFail:
		return ui.Bad
	case evidence.VerdictUndecided:
		return ui.Unsure
	}
	return ui.Plainly
}

// Verdict is a verdict for a cell of a table; a dash if there is none.
func Verdict(v evidence.Verdict) string { return Tone(v).Mark(ui.Dash(string(v))) }
