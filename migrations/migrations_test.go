package migrations_test

import (
	"fmt"
	"hash/crc32"
	"io/fs"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/migrations"
)

// A database of a commit with other tables is refused, because its schema has another mark. So whoever changes a step before release
// 0.1.0 changes the mark.
func TestMarksFollowTheSchemas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps fs.FS
		line  string // begins the statement that sets the mark
		mark  int
		text  string // the mark in that statement
	}{
		"sqlite":   {migrations.SQLite, "PRAGMA application_id =", migrations.SQLiteMark, fmt.Sprintf(" %#x;", migrations.SQLiteMark)},
		"postgres": {migrations.Postgres, "INSERT INTO catalog ", migrations.PostgresMark, fmt.Sprintf(" %d);", migrations.PostgresMark)},
	} {
		raw, err := fs.ReadFile(c.steps, name+"/00001_initial.sql")
		if err != nil {
			t.Fatal(err)
		}
		sum, set := crc32.NewIEEE(), false
		for line := range strings.Lines(string(raw)) {
			statement, _, _ := strings.Cut(line, "--")
			switch statement = strings.TrimSpace(statement); {
			case strings.HasPrefix(statement, c.line):
				set = set || strings.HasSuffix(statement, c.text)
			case statement != "":
				fmt.Fprintln(sum, statement)
			}
		}
		if want := int(sum.Sum32() & 0x7fffffff); c.mark != want || !set {
			t.Errorf("%s: the schema changed: want the mark %#x (%d) in migrations.go and in the step, and the sample of docs/reference/format.md made anew",
				name, want, want)
		}
	}
}
