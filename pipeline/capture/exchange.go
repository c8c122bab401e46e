package capture

import "net/http"

// exchange is a request with its answer, as far as they are copied.
type exchange struct {
	model    string // its name
	metadata string // path of what the service says about the model
	header   http.Header
	request  *bodyCopy
	length   int64 // of the request; below 0 if the client does not say
	answered http.Header
	answer   *bodyCopy // nil unless outputs are recorded
	status   int       // of the answer; 0 without one
}

func (x *exchange) release() {
	x.request.release()
	if x.answer != nil {
		x.answer.release()
	}
}
