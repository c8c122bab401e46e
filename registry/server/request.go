package server

import (
	"net/http"
	"net/url"
)

// request is a request with its route's parameters.
type request struct {
	*http.Request
	Name   string // of the model, or the value of {name} in the path
	Values query
	writer http.ResponseWriter
}

// query has the query parameters of a request.
type query = url.Values
