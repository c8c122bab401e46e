package ui

import (
	"fmt"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Note says something to people.
func (u *UI) Note(format string, args ...any) {
	u.Close()
	text := fmt.Sprintf(format, plainArguments(args)...)
	if u.log != nil {
		u.logNote(text)
		return
	}
	if ours := string(wordWarning) + " "; strings.HasPrefix(format, ours) {
		u.say(wordWarning, strings.TrimPrefix(text, ours))
		return
	}
	fmt.Fprintln(u.Stderr, u.Program+": "+text)
}

// Warn tells people to look at something, although the verb goes on.
func (u *UI) Warn(text string) { u.Note("warning: %s", text) }

// Fail writes an error and what to do about it.
func (u *UI) Fail(err error) {
	if err == nil {
		return
	}
	if u.log != nil {
		u.logFailure(err)
		return
	}
	for _, line := range messages(err) {
		u.say(wordError, line)
	}
	for _, hint := range registry.Hints(err) {
		u.say(wordHint, errorText(hint))
	}
}

// paints reports whether this run paints words. With --output json it does not, since a program
// may then read stderr too.
func (u *UI) paints() bool { return u.colors && !u.JSON }

// say writes a line for people that begins with a word.
func (u *UI) say(begin word, text string) {
	if to, ok := u.Stderr.(*printer); ok && u.paints() {
		_ = to.painted(u.Program+": ", begin.color(), string(begin), " "+text+"\n") // where stderr is gone, nothing can be said
		return
	}
	fmt.Fprintln(u.Stderr, u.Program+": "+string(begin)+" "+text)
}
