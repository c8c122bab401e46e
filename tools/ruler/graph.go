package main

import (
	"cmp"
	"go/ast"
	"go/types"
	"maps"
	"slices"
)

// unit is what cannot be divided between packages: a type with all its methods, a function, or a
// constant or variable.
type unit struct {
	name  string
	lines int
	uses  map[string]bool // names of other units of the package
}

// graph returns the units of a package, and which of its files refer to which others.
func (c code) graph() (units map[string]*unit, files map[string]map[string]bool) {
	units, files = make(map[string]*unit), make(map[string]map[string]bool)
	home := make(map[types.Object]string)
	for _, f := range c.files {
		files[f.name] = make(map[string]bool)
		for _, d := range f.tree.Decls {
			for _, object := range c.declared(d) {
				home[object] = f.name
			}
		}
	}
	for _, f := range c.files {
		for _, d := range f.tree.Decls {
			name := c.unitOf(d)
			if name == "" {
				continue
			}
			u := units[name]
			if u == nil {
				u = &unit{name: name, uses: make(map[string]bool)}
				units[name] = u
			}
			u.lines += c.fset.Position(d.End()).Line - c.fset.Position(d.Pos()).Line + 1
			ast.Inspect(d, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				object := c.info.Uses[id]
				if there, known := home[object]; known && there != f.name {
					files[f.name][there] = true
				}
				if used := c.unitName(object); used != "" && used != name {
					u.uses[used] = true
				}
				return true
			})
		}
	}
	return units, files
}

// declared returns the objects of a declaration at the top of a file.
func (c code) declared(d ast.Decl) []types.Object {
	var all []types.Object
	switch d := d.(type) {
	case *ast.FuncDecl:
		all = append(all, c.info.Defs[d.Name])
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				all = append(all, c.info.Defs[s.Name])
			case *ast.ValueSpec:
				for _, name := range s.Names {
					all = append(all, c.info.Defs[name])
				}
			}
		}
	}
	return all
}

// unitOf returns the unit that a declaration belongs to. A group of constants or variables
// belongs to its first name.
func (c code) unitOf(d ast.Decl) string {
	if objects := c.declared(d); len(objects) > 0 {
		return c.unitName(objects[0])
	}
	return ""
}

// unitName returns the unit of an object of the package: for a method and a field, the type that
// has it. It is empty for what is declared inside a function or in another package.
func (c code) unitName(object types.Object) string {
	if object == nil || object.Pkg() != c.types {
		return ""
	}
	if f, ok := object.(*types.Func); ok {
		if of := receiver(f); of != "" {
			return of
		}
	}
	if object.Parent() != c.types.Scope() {
		return ""
	}
	return object.Name()
}

// receiver returns the name of the type that has the method, or "" for a function.
func receiver(f *types.Func) string {
	recv := f.Signature().Recv()
	if recv == nil {
		return ""
	}
	t := recv.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := t.(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}

// knot returns the units of the largest strongly connected part of a package, by name, and their
// lines. A part of one unit is no knot.
func knot(units map[string]*unit) (members []string, lines int) {
	edges := make(map[string]map[string]bool, len(units))
	for name, u := range units {
		edges[name] = u.uses
	}
	for _, part := range components(edges) {
		sum := 0
		for _, name := range part {
			sum += units[name].lines
		}
		if len(part) > 1 && sum > lines {
			members, lines = part, sum
		}
	}
	slices.Sort(members)
	return members, lines
}

// components returns the strongly connected parts of a graph by Tarjan's algorithm (1972), each
// after all parts that it has edges to.
func components(edges map[string]map[string]bool) [][]string {
	index, low, onStack := make(map[string]int), make(map[string]int), make(map[string]bool)
	var stack []string
	var parts [][]string
	var visit func(v string)
	visit = func(v string) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack, onStack[v] = append(stack, v), true
		for _, w := range sortedKeys(edges[v]) {
			if _, known := edges[w]; !known {
				continue
			}
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if onStack[w] {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		part := slices.Clone(stack[at:])
		for _, w := range part {
			onStack[w] = false
		}
		stack = stack[:at]
		parts = append(parts, part)
	}
	for _, v := range sortedKeys(edges) {
		if index[v] == 0 {
			visit(v)
		}
	}
	return parts
}

// upward counts the arrows that no order of the files can turn downwards: within each circle of
// files, those against the order of Eades, Lin and Smyth (1993), which is close to the best one.
func upward(files map[string]map[string]bool) int {
	count := 0
	for _, part := range components(files) {
		place := order(part, files)
		for _, from := range part {
			for to := range files[from] {
				if at, inside := place[to]; inside && at < place[from] {
					count++
				}
			}
		}
	}
	return count
}

// order places the files of one circle: repeatedly, a file without arrows out goes to the end, one
// without arrows in to the front, else the one with most arrows out beyond those in to the front.
func order(part []string, files map[string]map[string]bool) map[string]int {
	left := make(map[string]bool, len(part))
	for _, name := range part {
		left[name] = true
	}
	place := make(map[string]int, len(part))
	front, end := 0, len(part)-1
	for len(left) > 0 {
		out, in := make(map[string]int), make(map[string]int)
		for from := range left {
			for to := range files[from] {
				if left[to] {
					out[from], in[to] = out[from]+1, in[to]+1
				}
			}
		}
		names := sortedKeys(left)
		sink := slices.IndexFunc(names, func(n string) bool { return out[n] == 0 })
		if sink >= 0 {
			place[names[sink]] = end
			end--
			delete(left, names[sink])
			continue
		}
		next := slices.MaxFunc(names, func(a, b string) int { // a file without arrows in has the largest difference, or another is as good
			return cmp.Or(cmp.Compare(out[a]-in[a], out[b]-in[b]), cmp.Compare(b, a))
		})
		place[next] = front
		front++
		delete(left, next)
	}
	return place
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
