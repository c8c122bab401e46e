// Package manpages writes the manual pages of a command line. It brings a renderer of Markdown with
// it, so only builds with the tag manpages, and tests, import it: a released program is without it.
package manpages

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Write writes a page for root and for each visible command below it into dir, which it makes if
// it is missing. The same commands, version and date give the same bytes.
func Write(root *cobra.Command, version string, date time.Time, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.InitDefaultCompletionCmd() // without arguments: cobra adds it only when a command runs
	prepare(root)
	date = date.UTC()
	header := &doc.GenManHeader{Section: "1", Date: &date, Source: root.Name() + " " + version, Manual: root.Name()}
	return doc.GenManTree(root, header, dir)
}

// prepare leaves the line out that says when a page was generated, and keeps lines of a help text
// that are indented as they are: Markdown makes a paragraph of them otherwise.
func prepare(c *cobra.Command) {
	c.DisableAutoGenTag = true
	c.Long = verbatim(c.Long)
	for _, child := range c.Commands() {
		prepare(child)
	}
}

// verbatim indents the lines of a text that are indented already so far that Markdown takes them
// for code, with an empty line before the first and after the last of them.
func verbatim(text string) string {
	var out []string
	within := false
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
		if indented != within && len(out) > 0 && out[len(out)-1] != "" {
			out = append(out, "")
		}
		if within = indented; indented {
			line = "  " + line
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}
