package spec

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Flow writes the mapping on one line, as a spec may hold it: what says nothing is left
// out, and keys stand in the order of the schema.
func (q Quantize) Flow() string { return flow(reflect.ValueOf(q)) }

// Flow writes the variant on one line: its name alone, where that says all.
func (v Variant) Flow() string {
	if v.Quantize == nil && v.Load == nil && !v.Compressed() {
		return Quoted(v.Name)
	}
	text := "{name: " + Quoted(v.Name)
	if v.Model.Written != "" {
		text += ", model: " + Quoted(v.Model.Written)
	}
	if len(v.Compress) > 0 {
		text += ", compress: " + flow(reflect.ValueOf(v.Compress))
	}
	if v.Quantize != nil {
		text += ", quantize: " + v.Quantize.Flow()
	}
	if v.Load != nil {
		text += ", load: " + flow(reflect.ValueOf(*v.Load))
	}
	return text + "}"
}

func flow(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case string:
		return Quoted(value)
	case Path:
		return Quoted(value.Written)
	case Fraction:
		return strconv.FormatFloat(100*float64(value), 'g', 12, 64) + "%"
	case float64:
		return strconv.FormatFloat(value, 'g', -1, 64)
	case int:
		return strconv.Itoa(value)
	case bool:
		return strconv.FormatBool(value)
	}
	var parts []string
	switch v.Kind() {
	case reflect.Pointer:
		return flow(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, flow(v.Index(i)))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Map: // of texts
		names := slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, name := range names {
			parts = append(parts, name.String()+": "+flow(reflect.ValueOf(v.MapIndex(name).String())))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if key != "" && !v.Field(i).IsZero() {
			parts = append(parts, key+": "+flow(v.Field(i)))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Flow writes the step on one line, as a spec may hold it.
func (s Compress) Flow() string { return flow(reflect.ValueOf(s)) }

// says is what a variant is made by, whatever its name: two that say the same are one.
func (v Variant) says() string {
	said := v.Precision
	if v.Quantize != nil {
		said = v.Quantize.Flow()
	}
	if v.Compressed() {
		said += " of " + flow(reflect.ValueOf(v.Compress)) + " " + v.Model.Written
	}
	if v.Load != nil {
		said += " " + flow(reflect.ValueOf(*v.Load))
	}
	return said
}

// Written is the variant as a person would write it: without what follows from its name.
func (v Variant) Written() Variant {
	bare := Variant{Name: v.Name}
	bare.complete()
	if v.Quantize != nil && v.Load == nil && !v.Compressed() && v.says() == bare.says() {
		return Variant{Name: v.Name}
	}
	if v.Quantize != nil && v.Quantize.Observer == ObserverMinMax {
		q := *v.Quantize
		q.Observer = ""
		v.Quantize = &q
	}
	return v
}
