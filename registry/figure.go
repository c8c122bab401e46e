package registry

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Figure is a measured number. JSON cannot express infinities and NaN, so those are the strings
// "inf", "-inf" and "nan".
type Figure float64

// MarshalJSON writes a number or one of the three strings.
func (f Figure) MarshalJSON() ([]byte, error) {
	switch v := float64(f); {
	case math.IsNaN(v):
		return []byte(`"nan"`), nil
	case math.IsInf(v, 1):
		return []byte(`"inf"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-inf"`), nil
	default:
		return json.Marshal(v)
	}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Figure) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"nan"`:
		*f = Figure(math.NaN())
	case `"inf"`:
		*f = Figure(math.Inf(1))
	case `"-inf"`:
		*f = Figure(math.Inf(-1))
	default:
		v, err := strconv.ParseFloat(string(data), 64)
		if err != nil {
			return fmt.Errorf("figure %s: want a number, \"inf\", \"-inf\" or \"nan\"", data)
		}
		*f = Figure(v)
	}
	return nil
}
