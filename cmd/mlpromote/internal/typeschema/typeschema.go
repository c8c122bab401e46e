// Package typeschema writes JSON Schemas (draft 2020-12) of Go types, as encoding/json writes their values.
package typeschema

import (
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Draft is the identifier of the draft of JSON Schema that the schemas follow.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Object is a schema or a part of one.
type Object = map[string]any

// Writer makes schemas of types. A struct type with a name becomes a definition in Defs, which must not be nil.
// The zero values of the other fields change nothing.
type Writer struct {
	Defs Object
	// Types are the schemas of types that encode themselves or have limited values.
	Types map[reflect.Type]Object
	// Fields are rules on single fields in addition to their type, by "package.Type.key".
	Fields map[string]Object
	// Unprefixed are the paths of packages. Names of their types have no package.
	Unprefixed []string
	// Open schemas allow keys that the type does not have.
	Open bool
}

// Ref refers to a definition.
func Ref(name string) Object {
	return Object{"$ref": "#/$defs/" + strings.ReplaceAll(name, " ", "%20")}
}

// Of returns the schema of a type.
func (w Writer) Of(t reflect.Type) Object {
	if schema, ok := w.special(t); ok {
		return schema
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.Of(t.Elem())
	case reflect.Struct:
		return w.structure(t)
	case reflect.Map:
		return Object{"type": []string{"object", "null"}, "additionalProperties": w.Of(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return Object{"type": "string", "contentEncoding": "base64"}
		}
		return Object{"type": []string{"array", "null"}, "items": w.Of(t.Elem())}
	case reflect.Bool:
		return Object{"type": "boolean"}
	case reflect.Float64:
		return Object{"type": "number"}
	case reflect.String:
		return Object{"type": "string"}
	case reflect.Interface:
		return Object{}
	}
	return Object{"type": "integer"}
}

// special gives the schemas of types that do not follow from their kind.
func (w Writer) special(t reflect.Type) (Object, bool) {
	if schema, ok := w.Types[t]; ok {
		return schema, true
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return Object{"type": "string", "format": "date-time"}, true
	case reflect.TypeFor[json.RawMessage]():
		return Object{}, true
	}
	return nil, false
}

// name is what a type is called among definitions; "" for one without a name.
func (w Writer) name(t reflect.Type) string {
	name := path.Base(t.PkgPath()) + "." + t.Name()
	if slices.Contains(w.Unprefixed, t.PkgPath()) {
		name = "." + t.Name()
	}
	if t.Name() == "" || strings.ContainsAny(name, "[]") {
		return ""
	}
	return name
}

// structure is a struct: a reference to its definition where it has a name.
func (w Writer) structure(t reflect.Type) Object {
	name := w.name(t)
	if name == "" {
		return w.object(t)
	}
	if _, ok := w.Defs[name]; !ok {
		w.Defs[name] = Object{} // a type may be part of itself
		w.Defs[name] = w.object(t)
	}
	return Ref(name)
}

func (w Writer) object(t reflect.Type) Object {
	properties, required := w.Properties(t)
	schema := Object{"type": "object", "properties": properties, "required": required}
	if !w.Open {
		schema["additionalProperties"] = false
	}
	return schema
}

// Properties returns the properties of a struct and of the structs in it, and the names that are always present.
func (w Writer) Properties(t reflect.Type) (properties Object, required []string) {
	properties, required = make(Object), []string{}
	always := make(map[string]bool)
	for _, f := range reflect.VisibleFields(t) {
		key, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && key == "" || !f.IsExported() || key == "-" {
			continue
		}
		if key == "" {
			key = f.Name
		}
		if _, ok := properties[key]; ok && len(f.Index) > 1 {
			continue // one that lies nearer has the name
		}
		properties[key] = w.field(t, f, key, rest)
		always[key] = !strings.Contains(rest, "omit")
	}
	for _, key := range slices.Sorted(maps.Keys(always)) {
		if always[key] {
			required = append(required, key)
		}
	}
	return properties, required
}

// field is the schema of a field, with what Fields says of it.
func (w Writer) field(t reflect.Type, f reflect.StructField, key, rest string) Object {
	schema := w.Of(f.Type)
	if f.Type.Kind() == reflect.Pointer && rest == "" {
		schema = Object{"anyOf": []any{schema, Object{"type": "null"}}}
	}
	limits, ok := w.Fields[w.name(owner(t, f))+"."+key]
	if !ok {
		return schema
	}
	schema = maps.Clone(schema)
	maps.Copy(schema, limits)
	return schema
}

// owner is the struct that declares a field: t, or one that it embeds.
func owner(t reflect.Type, f reflect.StructField) reflect.Type {
	for _, i := range f.Index[:len(f.Index)-1] {
		t = t.Field(i).Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	return t
}
