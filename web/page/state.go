package page

// The classes of states. Each state also has a word and a sign, so that nobody needs to see its colour.
const (
	ClassGood  = "good" // it is met, or may be used
	ClassWait  = "wait" // something is missing
	ClassBad   = "bad"  // something speaks against it
	ClassPlain = "plain"
)

// State is a word with a class.
type State struct {
	Class string
	Sign  string // of the class, for eyes
	Word  string
}

// StateOf is a state of a class, with the sign of the class.
func StateOf(class, word string) State {
	return State{class, map[string]string{ClassGood: "✓", ClassWait: "…", ClassBad: "✕", ClassPlain: "·"}[class], word}
}
