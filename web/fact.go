package web

// link is an address with its text.
type link struct{ Text, URL string }

// fact is a name with a digest or a text.
type fact struct {
	Name   string
	Text   string
	Digest digest
}

// command is something to copy.
type command struct{ What, Text string }

// ignored is evidence that does not count.
type ignored struct {
	Bundle digest
	Reason string
}
