package web

// The classes of states. Each state also has a word and a sign, so that its colour says nothing alone.
const (
	classGood  = "good" // it is met, or may be used
	classWait  = "wait" // something is missing
	classBad   = "bad"  // something speaks against it
	classPlain = "plain"
)

// state is a word with a class.
type state struct {
	Class string
	Sign  string // of the class, for eyes
	Word  string
}

func stateOf(class, word string) state {
	return state{class, map[string]string{classGood: "✓", classWait: "…", classBad: "✕", classPlain: "·"}[class], word}
}
