package signintest

import "html/template"

// page asks who somebody is. Its data is the query that the service sent them with.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Accounts</title><link rel="icon" href="data:,"></head>
<body><main><h1>Accounts</h1>
<form method="post" action="/login"><input type="hidden" name="asked" value="{{.}}">
<label>Name <input name="name"></label> <button>Log in</button> <button name="cancel" value="1">Cancel</button></form></main></body></html>`))
