package policy

import "mlpromote.dev/mlpromote/registry"

// EnvironmentURI returns the URI that trust entries and restriction lists use for a whole
// environment. A trust entry covers it if it covers every model there.
func (es Environments) EnvironmentURI(environment string) string {
	return registry.ResourceScheme + es.Registry + "/" + environment + "/"
}
