package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// Message is a message of the source. Its parts that change are "…".
type Message struct {
	Text string
	Exit string // "2"; empty if the cause decides
	Hint string
}

// Subject is a package of the program with its messages.
type Subject struct {
	Path     string // "pipeline/spec"
	Synopsis string
	Messages []Message
}

// folders have the program. Other packages are for tests.
var (
	folders = []string{"cmd/internal", "cmd/mlpromote", "cmd/mlpromote-node", "pipeline", "registry", "signer", "validators"}
	forTest = regexp.MustCompile(`test$|^testdata$`)
	drivers = filepath.Join("pipeline", "toolchain", "drivers")
)

// collect reads all packages. Without CodeInternal, whose message is for a report of a bug.
func collect(root string) ([]Subject, error) {
	codes, err := exitCodes(filepath.Join(root, "registry", "errors.go"))
	if err != nil {
		return nil, err
	}
	var subjects []Subject
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			if forTest.MatchString(d.Name()) {
				return fs.SkipDir
			}
			s, err := readPackage(root, path, codes)
			if err == nil && len(s.Messages) > 0 {
				subjects = append(subjects, s)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	own, err := readDrivers(root)
	return append(subjects, own...), err
}

// readPackage collects the messages of a folder.
func readPackage(root, dir string, codes map[string]string) (Subject, error) {
	relative, err := filepath.Rel(root, dir)
	if err != nil {
		return Subject{}, err
	}
	s := Subject{Path: filepath.ToSlash(relative)}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return s, err
	}
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, entry.Name()), nil, parser.ParseComments)
		if err != nil {
			return s, err
		}
		if file.Doc != nil && s.Synopsis == "" {
			s.Synopsis = new(doc.Package).Synopsis(file.Doc.Text())
		}
		r := reader{codes: codes, hinted: make(map[*ast.CallExpr]bool)}
		ast.Inspect(file, r.visit)
		s.Messages = append(s.Messages, r.found...)
	}
	s.Messages = sorted(s.Messages)
	return s, nil
}

// sorted puts messages in order of their words, each once.
func sorted(all []Message) []Message {
	slices.SortFunc(all, func(a, b Message) int {
		return strings.Compare(strings.TrimLeft(a.Text, "…: ")+a.Text+a.Hint, strings.TrimLeft(b.Text, "…: ")+b.Text+b.Hint)
	})
	return slices.Compact(all)
}

// reader collects the calls of a file that make messages.
type reader struct {
	codes  map[string]string // exit codes by the name of a constant
	found  []Message
	hinted map[*ast.CallExpr]bool // calls whose message is there already, with a hint
}

func (r *reader) visit(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return true
	}
	switch name := called(call); {
	case name == "WithHint" && len(call.Args) >= 2:
		r.hint(call)
	case name == "append" && len(call.Args) > 1 && warned.MatchString(last(call.Args[0])):
		r.add(warning, call.Args[1:]...)
	case name == "Warn" || name == "Caution":
		r.add(warning, call.Args...)
	case name == "problem" && len(call.Args) > 1: // of a spec
		r.add(invalid, call.Args[1])
	case name == "Problemf" && len(call.Args) > 0:
		r.add(invalid, call.Args[0])
	case name == "Usage" && len(call.Args) == 2: // of a command line
		r.add(invalid, call.Args[1])
	case !r.hinted[call]:
		if m, ok := r.message(call); ok {
			r.found = append(r.found, m)
		}
	}
	return true
}

// hint adds the hint of a call of WithHint, with its message if that is made in the call.
func (r *reader) hint(call *ast.CallExpr) {
	hint := text(call.Args[1])
	if inner, ok := call.Args[0].(*ast.CallExpr); ok {
		if m, ok := r.message(inner); ok {
			m.Hint, r.hinted[inner] = hint, true
			r.found = append(r.found, m)
			return
		}
	}
	if telling(hint) {
		r.found = append(r.found, Message{Hint: hint})
	}
}

// How a message ends a command that has no code of an error.
const (
	warning = "warning"
	invalid = "2"
)

// warned matches the names of lists of warnings.
var warned = regexp.MustCompile(`(?i)(warnings|notes)$`)

// last is the last name of an expression such as d.notes.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// add adds texts, as they are or formatted.
func (r *reader) add(exit string, texts ...ast.Expr) {
	for _, e := range texts {
		if call, ok := e.(*ast.CallExpr); ok && len(call.Args) > 0 && (called(call) == "Sprintf" || called(call) == "Errorf") {
			if _, coded := r.message(call); coded {
				continue // Inspect comes to it
			}
			e = call.Args[0]
		}
		if m := (Message{Text: text(e), Exit: exit}); telling(m.Text) {
			r.found = append(r.found, m)
		}
	}
}

// message is that of a call of Errorf or Lastingf with a code.
func (r *reader) message(call *ast.CallExpr) (Message, bool) {
	name := called(call)
	if name != "Errorf" && name != "Lastingf" || len(call.Args) < 2 {
		return Message{}, false
	}
	code := ""
	switch of := call.Args[0].(type) {
	case *ast.SelectorExpr:
		code = of.Sel.Name
	case *ast.Ident:
		code = of.Name
	case *ast.CallExpr: // CodeOf(err)
	default:
		return Message{}, false
	}
	m := Message{Text: text(call.Args[1]), Exit: r.codes[code]}
	if name == "Lastingf" {
		m.Exit = strconv.Itoa(registry.ExitFailed)
	}
	return m, code != "CodeInternal" && telling(m.Text)
}

// called is the name of the function that a call names, without its package.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return f.Sel.Name
	case *ast.Ident:
		return f.Name
	}
	return ""
}

var (
	verb    = regexp.MustCompile(`%[-+# 0]*(\[\d+\])?[\d*]*(\.[\d*]+)?[a-zA-Z]`)
	changes = regexp.MustCompile(`"?…"?(\s*…)*`)
	words   = regexp.MustCompile(`\p{L}{2,}`)
)

// text is a format as a reader meets it: what changes is "…".
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			return "…"
		}
		s = strings.ReplaceAll(verb.ReplaceAllString(strings.ReplaceAll(s, "%%", "\x00"), "…"), "\x00", "%")
		return strings.Join(strings.Fields(s), " ")
	case *ast.BinaryExpr:
		return changes.ReplaceAllString(join(e.X)+join(e.Y), "…")
	}
	return "…"
}

// join is text, with the space at its ends.
func join(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok {
		s, err := strconv.Unquote(literal.Value)
		if err == nil {
			return strings.ReplaceAll(verb.ReplaceAllString(strings.ReplaceAll(s, "%%", "\x00"), "…"), "\x00", "%")
		}
	}
	if both, ok := e.(*ast.BinaryExpr); ok {
		return join(both.X) + join(both.Y)
	}
	return "…"
}

// telling reports whether a message has words of its own. Others repeat their cause.
func telling(s string) bool { return len(words.FindAllString(s, -1)) >= 2 }

// exitCodes reads the constants of codes, and returns their exit codes by name.
func exitCodes(path string) (map[string]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	codes := make(map[string]string)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok {
			code, _ := strconv.Unquote(value.Value)
			codes[spec.Names[0].Name] = strconv.Itoa(registry.ExitCode(registry.Errorf(registry.Code(code), "")))
		}
		return true
	})
	if len(codes) < 10 {
		return nil, fmt.Errorf("%s: %d codes, want at least 10", path, len(codes))
	}
	return codes, nil
}

var (
	refused = regexp.MustCompile(`(?s)Refused\(\s*"[a-z_]+",\s*\(?\s*((?:f?"(?:[^"\\\n]|\\.)*"\s*)+)`)
	literal = regexp.MustCompile(`(f?)"((?:[^"\\\n]|\\.)*)"`)
	field   = regexp.MustCompile(`\{[^{}]*\}`)
)

// readDrivers collects what the drivers of toolchains refuse. Each folder is a subject.
func readDrivers(root string) ([]Subject, error) {
	files, err := filepath.Glob(filepath.Join(root, drivers, "*", "*.py"))
	if err != nil {
		return nil, err
	}
	found := make(map[string][]Message)
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range refused.FindAllStringSubmatch(string(source), -1) {
			var b strings.Builder
			for _, part := range literal.FindAllStringSubmatch(m[1], -1) {
				s := part[2]
				if part[1] != "" {
					s = strings.NewReplacer("\x01", "{", "\x02", "}").Replace(field.ReplaceAllString(strings.NewReplacer("{{", "\x01", "}}", "\x02").Replace(s), "…"))
				}
				b.WriteString(strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`).Replace(s))
			}
			if s := strings.Join(strings.Fields(b.String()), " "); telling(s) {
				name := filepath.Base(filepath.Dir(file))
				found[name] = append(found[name], Message{Text: s, Exit: strconv.Itoa(registry.ExitInvalid)})
			}
		}
	}
	var subjects []Subject
	for _, name := range registry.SortedKeys(found) {
		subjects = append(subjects, Subject{Path: filepath.ToSlash(filepath.Join(drivers, name)), Messages: sorted(found[name]),
			Synopsis: "Driver " + name + " refuses these, behind the name of the step and of the toolchain."})
	}
	return subjects, nil
}
