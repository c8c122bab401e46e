// Package wire is the REST shapes of the registry: paths, bodies and problems. Only
// registry/server and registry/client import it, so that the two cannot drift apart, and
// registry/access/gate, which answers for the server those it does not let in.
package wire

import (
	"strings"

	"mlpromote.dev/mlpromote/registry"
)

// The paths of the API. Those of a model are ModelsPath, the model's name and one of the
// operations. A name may have slashes and components that are called like operations, so
// an operation is always the last component; what else it needs is a query or a body.
const (
	Prefix            = "/api/v1"
	EnvironmentsPath  = Prefix + "/environments"
	HeadsPath         = Prefix + "/heads"
	HistoryPath       = Prefix + "/history"
	VerificationPath  = HistoryPath + "/verification"
	PromotionsPath    = Prefix + "/promotions/" // and the number of the event
	TargetsPath       = Prefix + "/targets"
	NodeTypesPath     = Prefix + "/node-types" // and a name
	RuntimesPath      = Prefix + "/runtimes"   // and a name
	EventsPath        = Prefix + "/events"
	WebhooksPath      = Prefix + "/webhooks" // and an identifier
	TokensPath        = Prefix + "/tokens"   // and an identifier
	ConfigurationPath = Prefix + "/configuration"
	OpenAPIPath       = Prefix + "/openapi.json"
	ModelListPath     = Prefix + "/models"
	ModelsPath        = ModelListPath + "/"

	OpResolve      = "resolve"
	OpReleases     = "releases" // ?environment=
	OpRelease      = "release"  // ?environment=&reference=: tag or digest, the head without
	OpEngines      = "engines"  // ?environment=&reference=
	OpEngine       = "engine"   // ?environment=&digest=
	OpBundle       = "bundle"   // ?environment=&digest=
	OpPublications = "publications"
	OpEvidence     = "evidence"    // ?environment=&reference=
	OpQuarantines  = "quarantines" // ?environment=&reference=
	OpPromotions   = "promotions"
	OpRollbacks    = "rollbacks"
	OpHolds        = "holds"
	OpHoldReleases = "hold-releases"
	OpAcceptances  = "history-acceptances"
)

// IdempotencyKey is the header that makes a service do what is posted once, however often
// it arrives.
const IdempotencyKey = "Idempotency-Key"

// MaxBody bounds a request or response body. A bundle is at most 4 MiB, and base64
// makes it a third longer.
const MaxBody = 8 << 20

// ModelPath is the path of an operation on a model. Errors: CodeNotFound for a name that
// no model can have, and that would lead elsewhere.
func ModelPath(model, operation string) (string, error) {
	if err := registry.ValidateModel(model); err != nil {
		return "", registry.Errorf(registry.CodeNotFound, "no such model: %s", err.Error())
	}
	return ModelsPath + model + "/" + operation, nil
}

// ParseModelPath reads a path below ModelsPath, which is already unescaped. Errors:
// CodeNotFound.
func ParseModelPath(path string) (model, operation string, err error) {
	rest, below := strings.CutPrefix(path, ModelsPath)
	slash := strings.LastIndexByte(rest, '/')
	if !below || slash < 0 || registry.ValidateModel(rest[:slash]) != nil {
		return "", "", registry.Errorf(registry.CodeNotFound, "no resource %s", path)
	}
	return rest[:slash], rest[slash+1:], nil
}
