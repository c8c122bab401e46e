package spec

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// SchemaID identifies the schema of mlpromote.yaml.
const SchemaID = "https://mlpromote.dev/schema/mlpromote.schema.json"

// Schema gives the JSON Schema (draft 2020-12) of mlpromote.yaml, for editors and for
// programs that write specs. It describes shapes: what a value means is checked by
// [Load]. The bytes are the same on every call.
func Schema() ([]byte, error) {
	root := schemaOf(reflect.TypeFor[Spec]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = File
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		return nil, registry.Errorf(registry.CodeInternal, "encode schema: %w", err)
	}
	return out.Bytes(), nil
}

// object is a schema or a part of one.
type object = map[string]any

// shorthand is a type that has a form beside the one that its fields give.
type shorthand interface {
	// schema gives the schema of the type from that of its fields.
	schema(fields object) object
}

// either is the schema of one form or the other.
func either(forms ...any) object { return object{"anyOf": forms} }

func text() object { return object{"type": "string", "minLength": 1} }

// below is the pattern of a relative path, which can stay below the folder of the spec.
const below = `^[^/\\]`

func (Path) schema(object) object { return pathText() }

func (Program) schema(object) object { return pathText() }

func pathText() object { return object{"type": "string", "minLength": 1, "pattern": below} }

func (Source) schema(fields object) object { return either(pathText(), fields) }

func (Folder) schema(fields object) object { return either(pathText(), fields) }

func (Cases) schema(fields object) object {
	fields["oneOf"] = []any{object{"required": []string{"path"}}, object{"required": []string{"generate"}}}
	return either(pathText(), fields)
}

func (Range) schema(object) object {
	size := object{"type": "integer", "minimum": 0}
	return either(size, object{"type": "array", "items": size, "minItems": 3, "maxItems": 3})
}

func (Dimension) schema(object) object {
	return either(object{"type": "integer", "minimum": 1}, object{"type": "string", "pattern": dimName.String()})
}

func (Variant) schema(fields object) object {
	return either(object{"enum": []string{"fp32", "fp16", "int8", "int4"}}, fields)
}

func (Target) schema(fields object) object {
	return either(object{"type": "string", "pattern": "^[a-z0-9]+/[a-z0-9]+(/v[1-4])?$"}, fields)
}

func (Toolchain) schema(fields object) object { return either(text(), fields) }

func (Provider) schema(fields object) object { return either(text(), fields) }

func (ProviderOptions) schema(object) object {
	return object{"type": "object", "additionalProperties": object{"type": []string{"string", "number", "boolean"}}}
}

func (Settings) schema(fields object) object { return ProviderOptions{}.schema(fields) }

func (Cache) schema(object) object {
	return object{"type": "string", "pattern": "^" + cacheScheme + "[^/]+/.+$"}
}

func (OutputLimits) schema(object) object { return structSchema(writtenOutputLimits()) }

func (Size) schema(object) object {
	return either(object{"type": "integer", "minimum": 0}, object{"type": "string", "pattern": `^[0-9]*\.?[0-9]+ *([KMGT]i?)?B?$`})
}

func (Fraction) schema(object) object {
	return either(object{"type": "number"}, object{"type": "string", "pattern": `^[+-]?[0-9]*\.?[0-9]+ *%$`})
}

func (Duration) schema(object) object {
	return object{"type": "string", "pattern": `^([0-9]*\.?[0-9]+ *(ns|us|µs|ms|s|m|h))+$`}
}

// schemaOf gives the schema of a type by its yaml, doc and enum tags.
func schemaOf(t reflect.Type) object {
	if t.Kind() == reflect.Pointer {
		return schemaOf(t.Elem())
	}
	plain := plainSchema(t)
	if s, ok := reflect.Zero(t).Interface().(shorthand); ok {
		return s.schema(plain)
	}
	return plain
}

func plainSchema(t reflect.Type) object {
	switch t.Kind() {
	case reflect.Struct:
		return structSchema(t)
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Float64:
		return object{"type": "number"}
	}
	return object{"type": "string"}
}

func structSchema(t reflect.Type) object {
	properties := object{}
	required := []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		key, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "" {
			continue
		}
		property := schemaOf(f.Type)
		property["description"] = f.Tag.Get("doc")
		if words := f.Tag.Get("enum"); words != "" {
			property["enum"] = enum(strings.Split(words, ","), f.Type)
		}
		if f.Type.Kind() == reflect.Slice && option == "required" {
			property["minItems"] = 1
		}
		properties[key] = property
		if option == "required" {
			required = append(required, key)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// enum is what a property of a type may be: numbers as numbers.
func enum(words []string, t reflect.Type) any {
	if t.Kind() != reflect.Int {
		return words
	}
	numbers := make([]int, len(words))
	for i, w := range words {
		numbers[i], _ = strconv.Atoi(w) // a tag of ours
	}
	return numbers
}

func (Names) schema(object) object {
	return either(pathText(), object{"type": "array", "minItems": 1, "items": object{"type": "string"}})
}
