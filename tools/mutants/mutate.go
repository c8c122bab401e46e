package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// mutant is one change of one file.
type mutant struct {
	file       string // relative to the module
	line       int
	source     string // the line, without indentation
	start, end int    // the bytes that are replaced
	to         string
	change     string // what was changed: "a < b → a <= b"
	data       []byte // the file before the change
	drops      bool   // an error is replaced by nil
}

// String names a mutant: "registry/ref.go:12: a < b → a <= b".
func (m mutant) String() string { return fmt.Sprintf("%s:%d: %s", m.file, m.line, m.change) }

// short writes code on one line of limited length.
func short(code string) string {
	code = strings.Join(strings.Fields(code), " ")
	if runes := []rune(code); len(runes) > 90 {
		return string(runes[:90]) + "…"
	}
	return code
}

// apply gives the file with the change.
func (m mutant) apply() []byte {
	return []byte(string(m.data[:m.start]) + m.to + string(m.data[m.end:]))
}

// mutants finds every change that this program knows to make in a file. Generated files give none.
func mutants(file string, data []byte) ([]mutant, error) {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, data, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(parsed) {
		return nil, nil
	}
	f := finder{file: file, data: data, positions: positions, lines: strings.Split(string(data), "\n")}
	for _, d := range parsed.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.function(fn.Type, fn.Body)
		}
	}
	return f.found, nil
}

// finder collects the mutants of a file.
type finder struct {
	file      string
	data      []byte
	positions *token.FileSet
	lines     []string
	found     []mutant
}

// function visits a body. Functions in it are visited with their own result types.
func (f *finder) function(signature *ast.FuncType, body *ast.BlockStmt) {
	results := signature.Results.NumFields()
	fails := results > 0 && isError(signature.Results.List[len(signature.Results.List)-1].Type)
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.function(n.Type, n.Body)
			return false
		case *ast.IfStmt:
			f.negate(n.Cond)
		case *ast.BinaryExpr:
			f.operator(n)
		case *ast.Ident:
			f.constant(n)
		case *ast.ReturnStmt:
			if fails && len(n.Results) == results {
				f.dropError(n.Results[results-1])
			}
		}
		return true
	})
}

func isError(t ast.Expr) bool {
	name, ok := t.(*ast.Ident)
	return ok && name.Name == "error"
}

// negate turns a condition round. That of == and != is turned round by operator.
func (f *finder) negate(condition ast.Expr) {
	if b, ok := condition.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	negated := "!(" + f.text(condition) + ")"
	f.add(condition, negated, negated)
}

// operator shifts the boundary of a comparison, turns an equality round, or confuses "and" with "or".
func (f *finder) operator(b *ast.BinaryExpr) {
	other, ok := map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	}[b.Op]
	if ok {
		// Parentheses keep the operands together, since "and" binds closer than "or".
		left, right := f.text(b.X), f.text(b.Y)
		f.add(b, fmt.Sprintf("((%s) %s (%s))", left, other, right), fmt.Sprintf("%s %s %s", left, other, right))
	}
}

// constant swaps true and false.
func (f *finder) constant(name *ast.Ident) {
	if other, ok := map[string]string{"true": "false", "false": "true"}[name.Name]; ok {
		f.add(name, other, other)
	}
}

// dropError returns nil in place of an error. The error is still made, so that the file compiles.
func (f *finder) dropError(result ast.Expr) {
	if text := f.text(result); text != "nil" {
		f.add(result, "func(error) error { return nil }("+text+")", "nil")
		f.found[len(f.found)-1].drops = true
	}
}

func (f *finder) text(n ast.Node) string {
	return string(f.data[f.offset(n.Pos()):f.offset(n.End())])
}

func (f *finder) offset(p token.Pos) int { return f.positions.Position(p).Offset }

// add records that code replaces a node; shown is how a person reads that code.
func (f *finder) add(n ast.Node, code, shown string) {
	line := f.positions.Position(n.Pos()).Line
	f.found = append(f.found, mutant{
		file: f.file, line: line, source: strings.TrimSpace(f.lines[line-1]),
		start: f.offset(n.Pos()), end: f.offset(n.End()), to: code, change: short(f.text(n)) + " → " + short(shown), data: f.data,
	})
}
