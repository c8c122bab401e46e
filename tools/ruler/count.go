package main

import (
	"go/ast"
	"go/types"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// figure is one measured number, its largest allowed value, and where most of it comes from.
type figure struct {
	name   string
	value  int
	target int
	places []string // the packages, types or lines that add to it, largest first
}

// The limits of a single package. A package that holds more than this hides where things are.
const (
	mostFiles = 30
	mostLines = 4000
	// mostFilesOfType is in how many files the methods of a type may lie.
	mostFilesOfType = 8
)

// exported counts the names that other packages can use. Methods and fields belong to their type.
func (c code) exported() int {
	count := 0
	for _, name := range c.types.Scope().Names() {
		if ast.IsExported(name) && c.written(c.types.Scope().Lookup(name)) {
			count++
		}
	}
	return count
}

// written reports whether an object is declared in a file of the package that somebody wrote.
func (c code) written(object types.Object) bool {
	in := filepath.Base(c.fset.Position(object.Pos()).Filename)
	return slices.ContainsFunc(c.files, func(f file) bool { return f.name == in })
}

func (c code) lines() int {
	sum := 0
	for _, f := range c.files {
		sum += f.lines
	}
	return sum
}

// spreadTypes returns the types with methods in more than most files, and the number of files.
func (c code) spreadTypes(most int) map[string]int {
	in := make(map[string]map[string]bool)
	for _, f := range c.files {
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				name := c.unitOf(fn)
				if in[name] == nil {
					in[name] = make(map[string]bool)
				}
				in[name][f.name] = true
			}
		}
	}
	spread := make(map[string]int)
	for name, files := range in {
		if len(files) > most {
			spread[name] = len(files)
		}
	}
	return spread
}

// verdictAssignments returns the lines outside a function called fold that assign the verdict of a
// report: the field Verdict of a struct that embeds or is one of the types in reports.
func (c code) verdictAssignments(reports ...string) []string {
	var found []string
	c.inFunctions(func(name string, n ast.Node) {
		if strings.EqualFold(name, "fold") {
			return
		}
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				s, ok := left.(*ast.SelectorExpr)
				if ok && s.Sel.Name == "Verdict" && c.fieldOf(s, reports) {
					found = append(found, c.at(n))
				}
			}
		case *ast.CompositeLit:
			if !slices.Contains(reports, typeName(c.info.TypeOf(n))) {
				return
			}
			for _, e := range n.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && isNamed(kv.Key, "Verdict") {
					found = append(found, c.at(kv))
				}
			}
		}
	})
	return found
}

// fieldOf reports whether a selected field is declared in one of the named structs.
func (c code) fieldOf(s *ast.SelectorExpr, structs []string) bool {
	selection := c.info.Selections[s]
	if selection == nil {
		return false
	}
	t := selection.Recv()
	for i, index := range selection.Index() {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		fields, ok := t.Underlying().(*types.Struct)
		if !ok {
			return false
		}
		if i == len(selection.Index())-1 {
			return slices.Contains(structs, typeName(t))
		}
		t = fields.Field(index).Type()
	}
	return false
}

// readers take texts apart or compare them.
var readers = []string{
	"strings.Contains", "strings.ContainsAny", "strings.HasPrefix", "strings.HasSuffix", "strings.Index", "strings.LastIndex",
	"strings.Cut", "strings.CutPrefix", "strings.CutSuffix", "strings.TrimPrefix", "strings.TrimSuffix", "strings.EqualFold",
	"strings.Split", "strings.SplitN", "strings.Fields",
}

// sentences are fields and methods that hold text for people.
var sentences = []string{"Error", "Detail", "Details", "Reason", "Reasons", "Message", "Hint"}

// textDecisions returns the lines that take a text for people apart, or compare it with another
// text than the empty one. What it decides changes with the wording.
func (c code) textDecisions() []string {
	var found []string
	c.inFunctions(func(_ string, n ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			called, ok := n.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains(readers, types.ExprString(called)) && slices.ContainsFunc(n.Args[:1], c.isSentence) {
				found = append(found, c.at(n))
			}
			if ok && isPattern(c.info.TypeOf(called.X)) && slices.ContainsFunc(n.Args, c.isSentence) {
				found = append(found, c.at(n))
			}
		case *ast.BinaryExpr:
			if op := n.Op.String(); (op == "==" || op == "!=") && c.comparesSentence(n.X, n.Y) {
				found = append(found, c.at(n))
			}
		}
	})
	return found
}

func (c code) comparesSentence(x, y ast.Expr) bool {
	constant := func(e ast.Expr) bool { v := c.info.Types[e].Value; return v != nil && v.ExactString() != `""` }
	return c.isSentence(x) && constant(y) || c.isSentence(y) && constant(x)
}

// isSentence reports whether an expression is a text for people: x.Error(), x.Detail, or an element of x.Reasons.
func (c code) isSentence(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CallExpr:
		s, ok := e.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Error" && len(e.Args) == 0
	case *ast.IndexExpr:
		return c.isSentence(e.X)
	case *ast.SelectorExpr:
		if !slices.Contains(sentences, e.Sel.Name) {
			return false
		}
		t := c.info.TypeOf(e)
		if t == nil {
			return false
		}
		if s, ok := t.Underlying().(*types.Slice); ok {
			t = s.Elem()
		}
		_, isNamed := t.(*types.Named) // a type of its own is a code, and no text
		b, ok := t.Underlying().(*types.Basic)
		return ok && b.Kind() == types.String && !isNamed
	}
	return false
}

func isPattern(t types.Type) bool { return t != nil && t.String() == "*regexp.Regexp" }

// inFunctions visits the nodes of all functions with the function's name.
func (c code) inFunctions(visit func(function string, n ast.Node)) {
	for _, f := range c.files {
		for _, d := range f.tree.Decls {
			name := ""
			if fn, ok := d.(*ast.FuncDecl); ok {
				name = fn.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if n != nil {
					visit(name, n)
				}
				return true
			})
		}
	}
}

// at returns where a node is: "registry/match.go:30".
func (c code) at(n ast.Node) string {
	p := c.fset.Position(n.Pos())
	return c.path + "/" + filepath.Base(p.Filename) + ":" + strconv.Itoa(p.Line)
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// typeName returns the name of a type without its package.
func typeName(t types.Type) string {
	if t == nil {
		return ""
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}
