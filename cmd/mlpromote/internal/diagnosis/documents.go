package diagnosis

import "reflect"

// Documents are the types of what the verbs print with --output json.
func Documents() map[string][]reflect.Type {
	return map[string][]reflect.Type{
		"bisect":    {reflect.TypeFor[bisected]()},
		"profile":   {reflect.TypeFor[profiled]()},
		"readiness": {reflect.TypeFor[checklist]()},
		"replay":    {reflect.TypeFor[replayed]()},
	}
}
