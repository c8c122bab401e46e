package environments

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/policy"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/registry/trust"
)

// timeLayout is how a file writes a time.
const timeLayout = "2006-01-02T15:04:05Z"

// AddTrust returns data, a file, with one more trust entry at the end of the list. It keeps every
// other byte, and so comments and order. Messages call the file name. Errors: those of [Parse];
// CodeInvalid for a file that has to be changed by hand.
func AddTrust(name string, data []byte, e trust.TrustEntry) ([]byte, error) {
	d, err := newEdit(name, data)
	if err != nil {
		return nil, err
	}
	d.appendItem(d.doc.At("trust"), entryText(e))
	want := d.before
	want.Trust = append(slices.Clone(want.Trust), e)
	return d.finish(want, "- "+entryText(e))
}

// SetKeyState returns data, a file, with a state in every trust entry of a key; since is when the
// key was retired or revoked. It keeps every other byte. Errors: those of [AddTrust]; CodeNotFound
// if no entry names the key.
func SetKeyState(name string, data []byte, key string, state evidence.KeyState, since time.Time) ([]byte, error) {
	d, err := newEdit(name, data)
	if err != nil {
		return nil, err
	}
	since = since.UTC().Truncate(time.Second)
	want, found := d.before, false
	want.Trust = slices.Clone(want.Trust)
	for i, e := range want.Trust {
		if e.Key != key || key == "" {
			continue
		}
		found = true
		d.set(d.doc.At("trust", i), "state", string(state), "since", since.Format(timeLayout))
		want.Trust[i].State, want.Trust[i].RetiredAt, want.Trust[i].RevokedAt = state, time.Time{}, time.Time{}
		if state == evidence.KeyRetired {
			want.Trust[i].RetiredAt = since
		} else {
			want.Trust[i].RevokedAt = since
		}
	}
	if !found {
		return nil, registry.Errorf(registry.CodeNotFound, "%s: no trust entry names key %s", name, key)
	}
	return d.finish(want, "state: "+string(state)+", since: "+since.Format(timeLayout)+" in every entry of "+key)
}

// edit changes the text of a file at the places that its parsed tree names.
type edit struct {
	name   string
	crlf   bool
	lines  []string
	doc    *strictyaml.Document
	before policy.Environments
	// changes are made at the end, last place first, so that they do not move each other.
	changes []splice
	failed  bool // a place was not what the tree said
}

// splice replaces the bytes from..to of a line, both from 0, by text. With whole, text is lines of
// its own after the line.
type splice struct {
	line, from, to int
	text           string
	whole          bool
}

func newEdit(name string, data []byte) (*edit, error) {
	es, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	var f file
	doc, err := strictyaml.Decode(name, data, &f)
	if err != nil {
		return nil, err
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	crlf := strings.Contains(text, "\r\n")
	return &edit{name: name, crlf: crlf, lines: strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), doc: doc, before: es}, nil
}

// finish makes the changes, and checks that the file then says what it should. byHand is what to
// write where it does not.
func (d *edit) finish(want policy.Environments, byHand string) ([]byte, error) {
	slices.SortStableFunc(d.changes, func(a, b splice) int {
		if a.line != b.line {
			return b.line - a.line
		}
		return b.from - a.from
	})
	for _, c := range d.changes {
		d.apply(c)
	}
	text := strings.Join(d.lines, "\n")
	if d.crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	got, err := Parse(d.name, []byte(text))
	want.Digest, got.Digest = "", ""
	if d.failed || err != nil || !reflect.DeepEqual(got, want) {
		refused := registry.Errorf(registry.CodeInvalid, "%s: this way of writing the file cannot be changed by a command", d.name)
		return nil, registry.WithHint(refused, "change trust: by hand: %s", byHand)
	}
	return []byte(text), nil
}

func (d *edit) apply(c splice) {
	if c.line < 0 || c.line >= len(d.lines) || !c.whole && (c.from > c.to || c.to > len(d.lines[c.line])) {
		d.failed = true
		return
	}
	if c.whole {
		d.lines = slices.Insert(d.lines, c.line+1, c.text)
		return
	}
	line := d.lines[c.line]
	d.lines[c.line] = line[:c.from] + c.text + line[c.to:]
}

// appendItem adds an item to a list.
func (d *edit) appendItem(list *strictyaml.Node, text string) {
	if line, column, inBrackets := list.Closing(); inBrackets {
		d.insertBefore(line, column, text)
		return
	}
	_, column := list.Position()
	d.changes = append(d.changes, splice{line: list.LastLine() - 1, text: strings.Repeat(" ", column-1) + "- " + text, whole: true})
}

// set gives keys of a mapping the texts that follow them.
func (d *edit) set(mapping *strictyaml.Node, pairs ...string) {
	var missing []string
	for i := 0; i < len(pairs); i += 2 {
		at := slices.IndexFunc(mapping.Entries(), func(e strictyaml.Entry) bool { return e.Key == pairs[i] })
		if at >= 0 {
			d.replaceScalar(mapping.Entries()[at].Value, pairs[i+1])
			continue
		}
		missing = append(missing, pairs[i]+": "+pairs[i+1])
	}
	if len(missing) == 0 {
		return
	}
	if line, column, inBrackets := mapping.Closing(); inBrackets {
		d.insertBefore(line, column, strings.Join(missing, ", "))
		return
	}
	_, column := mapping.Position()
	indent := strings.Repeat(" ", column-1)
	d.changes = append(d.changes, splice{line: mapping.LastLine() - 1, text: indent + strings.Join(missing, "\n"+indent), whole: true})
}

// insertBefore adds text before a closing bracket, after a comma where something is there already.
func (d *edit) insertBefore(line, column int, text string) {
	line--
	for at := d.offset(line, column); line >= 0; line-- {
		before := strings.TrimRight(d.lines[line][:at], " \t")
		if before != "" {
			if last := before[len(before)-1]; last != '[' && last != '{' && last != ',' {
				text = ", " + text
			} else if last == ',' {
				text = " " + text
			}
			d.changes = append(d.changes, splice{line: line, from: len(before), to: len(before), text: text})
			return
		}
		if line > 0 {
			at = len(d.lines[line-1])
		}
	}
	d.failed = true
}

// replaceScalar replaces a value that is written in one line.
func (d *edit) replaceScalar(n *strictyaml.Node, text string) {
	line, column := n.Position()
	from := d.offset(line-1, column)
	rest := ""
	if line <= len(d.lines) {
		rest = d.lines[line-1][from:]
	}
	length := len(n.Text())
	if quoted := strings.HasPrefix(rest, `"`) || strings.HasPrefix(rest, "'"); quoted {
		length += 2
	}
	d.changes = append(d.changes, splice{line: line - 1, from: from, to: from + length, text: text})
}

// offset is the byte of a column, from 1 and in characters, of a line, from 0.
func (d *edit) offset(line, column int) int {
	if line < 0 || line >= len(d.lines) {
		d.failed = true
		return 0
	}
	runes := []rune(d.lines[line])
	return len(string(runes[:min(max(column-1, 0), len(runes))]))
}

// plainText matches what YAML reads as text without quotes, also in brackets.
var plainText = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./@-]*$`)

// entryText writes an entry as one line of YAML.
func entryText(e trust.TrustEntry) string {
	var parts []string
	if e.Key != "" {
		parts = append(parts, "key: "+quoted(e.Key))
	}
	var roles, resources []string
	for _, r := range e.Roles {
		roles = append(roles, string(r))
	}
	for _, r := range e.Resources {
		resources = append(resources, strconv.Quote(r))
	}
	parts = append(parts, "roles: ["+strings.Join(roles, ", ")+"]", "resources: ["+strings.Join(resources, ", ")+"]")
	for _, bound := range []struct {
		key string
		at  time.Time
	}{{"from", e.Window.From}, {"until", e.Window.Until}} {
		if !bound.at.IsZero() {
			parts = append(parts, bound.key+": "+bound.at.UTC().Format(timeLayout))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// quoted writes a text for YAML, in quotes where it needs them.
func quoted(text string) string {
	if plainText.MatchString(text) && text != "true" && text != "false" && text != "null" {
		return text
	}
	return strconv.Quote(text)
}

// First returns the first file of a registry that had none: the default with e as its only trust
// entry.
func First(e trust.TrustEntry) []byte {
	before, _, _ := strings.Cut(string(defaults), "\ntrust:")
	return []byte(before + "\ntrust:\n  - " + entryText(e) + "\n")
}
