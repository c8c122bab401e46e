package auditing

import "reflect"

// Documents are the types of what the verbs print with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"history check-proof": {reflect.TypeFor[provenEvent]()},
		"history checkpoint":  {reflect.TypeFor[madeCheckpoint]()},
		"history export":      {reflect.TypeFor[exportedHistory]()},
		"history prove":       {reflect.TypeFor[madeProof]()},
		"history verify":      {reflect.TypeFor[checkedHistory]()},
		"trust bundle":        {reflect.TypeFor[shownTrust]()},
		"trust publish":       {reflect.TypeFor[shownTrust]()},
	}
}
