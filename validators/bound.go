package validators

import (
	"reflect"
	"strings"

	"mlpromote.dev/mlpromote/registry/figure"
)

// Bound returns the limit on a figure; false if there is none.
func (o OutputLimits) Bound(r figure.Row) (float64, bool) {
	switch l := o.field(r).Interface().(type) {
	case *AtLeast:
		if l != nil {
			return l.Min, true
		}
	case *AtMost:
		if l != nil {
			return l.Max, true
		}
	}
	return 0, false
}

// judged lists the figures that an output is judged by, with their limits. quarters reports whether its values are of many magnitudes.
func (o OutputLimits) judged(quarters bool) (rows []figure.Row, limits []float64) {
	for _, row := range figure.OfOutputs() {
		limit, there := o.Bound(row)
		if !there || row.ZeroIsNone && limit == 0 || row.Name == figure.QuarterError && !quarters {
			continue
		}
		if row.OfSpread && quarters && o.QuartersAlone {
			if row.BesideQuarters == 0 {
				continue
			}
			limit *= row.BesideQuarters
		}
		rows, limits = append(rows, row), append(limits, limit)
	}
	return rows, limits
}

// SetBound limits a figure.
func (o *OutputLimits) SetBound(r figure.Row, limit float64) {
	if r.AtLeast {
		o.field(r).Set(reflect.ValueOf(&AtLeast{limit}))
	} else {
		o.field(r).Set(reflect.ValueOf(&AtMost{limit}))
	}
}

// unbound removes the limit on a figure.
func (o *OutputLimits) unbound(r figure.Row) { o.field(r).SetZero() }

// field is the limit on a figure of outputs: the field that JSON calls by the figure's name.
func (o *OutputLimits) field(r figure.Row) reflect.Value {
	v := reflect.ValueOf(o).Elem()
	for i := range v.NumField() {
		if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name == r.Name {
			return v.Field(i)
		}
	}
	panic("limits of outputs have no field " + r.Name)
}

// limit is one bound of a figure; the zero limit is none.
type limit struct {
	value   float64
	atLeast bool
	there   bool
}

func least(a *AtLeast) limit {
	if a == nil {
		return limit{}
	}
	return limit{a.Min, true, true}
}

func most(a *AtMost) limit {
	if a == nil {
		return limit{}
	}
	return limit{a.Max, false, true}
}

// keeps reports whether a value is within the limit; NaN never is.
func (l limit) keeps(v float64) bool { return figure.Row{AtLeast: l.atLeast}.Keeps(v, l.value) }
