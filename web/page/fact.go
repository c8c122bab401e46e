package page

// Link is an address with its text.
type Link struct{ Text, URL string }

// Fact is a name with a digest or a text.
type Fact struct {
	Name   string
	Text   string
	Digest Digest
}

// Command is something to copy.
type Command struct{ What, Text string }

// Ignored is evidence that does not count.
type Ignored struct {
	Bundle Digest
	Reason string
}
