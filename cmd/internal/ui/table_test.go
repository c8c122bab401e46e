package ui

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A table keeps to 80 columns: the widest column goes on below, by words. A word that is longer stays whole.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	long := strings.TrimSpace(strings.Repeat("reason ", 30))
	word := strings.Repeat("x", 90)
	for _, c := range []struct {
		name string
		rows [][]string
		want string // empty: only the width is checked
	}{
		{"narrow", [][]string{{"A", "B"}, {"1", "two words"}}, "A  B\n1  two words\n"},
		{"long words", [][]string{{"A", "B"}, {"1", word + " and more"}}, "A  B\n1  " + word + "\n   and more\n"},
		{"two long columns", [][]string{{"A", "B", "C"}, {"1", long, long}}, ""},
		{"a long first column", [][]string{{"A", "B"}, {"one two three four five six seven eight", strings.Repeat("y", 60)}},
			"A                   B\none two three four  " + strings.Repeat("y", 60) + "\n  five six seven\n  eight\n"},
		{"signs", [][]string{{"", "STATE", "WHY"}, {Good.Sign(), Good.Mark("met"), long}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := Bare(tableIn(Width, c.rows))
			if c.want != "" && text != c.want {
				t.Errorf("the table is\n%s\nwant\n%s", text, c.want)
			}
			for line := range strings.Lines(text) {
				if c.want == "" && utf8.RuneCountInString(line)-1 > Width {
					t.Errorf("%d columns: %q", utf8.RuneCountInString(line)-1, line)
				}
			}
			for _, row := range c.rows {
				for _, cell := range row {
					for word := range strings.FieldsSeq(Bare(cell)) {
						if strings.Count(text, word) == 0 {
							t.Errorf("%q is lost in\n%s", word, text)
						}
					}
				}
			}
		})
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked    string
		terminal int
		want     int
	}{{"", 0, 0}, {"", 120, 120}, {"100", 120, 100}, {"100", 0, 100}, {"wide", 120, 120}, {"10", 120, Width}, {"", 12, Width}, {"-5", 90, Width}, {"0", 0, Width}} {
		if got := columnsOf(func(string) string { return c.asked }, c.terminal); got != c.want {
			t.Errorf("COLUMNS=%s in a terminal of %d: %d, want %d", c.asked, c.terminal, got, c.want)
		}
	}
}

// In a file or a pipe, where columns is 0, a row is one line.
func TestTableInPipe(t *testing.T) {
	t.Parallel()
	cell := strings.TrimSpace(strings.Repeat("word ", 60))
	if text, want := Table([][]string{{"A", "B"}, {cell, cell}}), cell+"  "+cell+"\n"; !strings.HasSuffix(text, "\n"+want) {
		t.Errorf("%q, want a last line %q", text, want)
	}
}

func TestParagraph(t *testing.T) {
	t.Parallel()
	text := Paragraph(strings.Repeat("0123456 ", 12)+"end", "  ")
	if want := strings.Repeat("0123456 ", 9) + "0123456\n  0123456 0123456 end"; text != want {
		t.Errorf("%q, want %q", text, want)
	}
}

// Verdicts are painted on a terminal and signed elsewhere. Bytes from elsewhere are not painted, except as one of our words.
func TestVerdictsArePainted(t *testing.T) {
	t.Parallel()
	text := Table([][]string{{"", "ENGINE", "VERDICT"}, {Bad.Sign(), "v1/int8\x1b[32m", Bad.Mark("fail")}, {"", mark(Good, "all is well"), Plainly.Mark("-")}})
	for painted, want := range map[bool]string{
		true:  "\x1b[1;31m✗\x1b[0m  v1/int8\\u001b[32m",
		false: "✗  v1/int8\\u001b[32m",
	} {
		u, stdout, _ := screen()
		u.paintsResults = painted
		if err := u.Result(text, nil); err != nil {
			t.Fatal(err)
		}
		got := stdout.String()
		if !strings.Contains(got, want) || strings.ContainsAny(got, markBegin+markEnd) {
			t.Errorf("painted %v:\n%q, want %q", painted, got, want)
		}
		if n := strings.Count(got, "\x1b["); painted && n != 4 || !painted && n != 0 {
			t.Errorf("painted %v: %d sequences in %q", painted, n, got)
		}
	}
}
