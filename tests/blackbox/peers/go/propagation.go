// SPDX-License-Identifier: Apache-2.0

// OpenTelemetry's Go SDK as a neighbour: what peers/propagation.py says, by the propagators of the
// argument.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"go.opentelemetry.io/contrib/propagators/b3"
	"go.opentelemetry.io/contrib/propagators/jaeger"
	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

var propagators = map[string]propagation.TextMapPropagator{
	"tracecontext,baggage": propagation.NewCompositeTextMapPropagator(
		propagation.TraceContext{}, propagation.Baggage{}),
	"b3":      b3.New(b3.WithInjectEncoding(b3.B3SingleHeader)),
	"b3multi": b3.New(b3.WithInjectEncoding(b3.B3MultipleHeader)),
	"jaeger":  jaeger.Jaeger{},
}

type seen struct {
	Trace      string            `json:"trace"`
	Span       string            `json:"span"`
	Sampled    bool              `json:"sampled"`
	Tracestate string            `json:"tracestate"`
	Baggage    map[string]string `json:"baggage"`
	Ratio      bool              `json:"ratio"`
}

func see(form propagation.TextMapPropagator, request *http.Request) seen {
	ctx := form.Extract(context.Background(), propagation.HeaderCarrier(request.Header))
	span := trace.SpanContextFromContext(ctx)
	_, child := sdk.NewTracerProvider().Tracer("peer").Start(ctx, "peer")
	result := sdk.TraceIDRatioBased(0.3).ShouldSample(sdk.SamplingParameters{
		ParentContext: context.Background(), TraceID: span.TraceID()})
	entries := map[string]string{}
	for _, member := range baggage.FromContext(ctx).Members() {
		entries[member.Key()] = member.Value()
	}
	return seen{span.TraceID().String(), span.SpanID().String(), child.IsRecording(),
		span.TraceState().String(), entries, result.Decision == sdk.RecordAndSample}
}

func send(form propagation.TextMapPropagator, request *http.Request, answer io.Writer) error {
	query := request.URL.Query()
	id, err := trace.TraceIDFromHex(query.Get("trace"))
	if err != nil {
		return err
	}
	span, err := trace.SpanIDFromHex(query.Get("span"))
	if err != nil {
		return err
	}
	state, err := trace.ParseTraceState(query.Get("tracestate"))
	if err != nil {
		return err
	}
	flags := trace.TraceFlags(0).WithSampled(query.Get("sampled") == "1")
	ctx := trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(
		trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: flags, TraceState: state}))
	entries := map[string]string{}
	if err := json.Unmarshal([]byte(query.Get("baggage")), &entries); err != nil {
		return err
	}
	members := []baggage.Member{}
	for name, value := range entries {
		member, err := baggage.NewMemberRaw(name, value)
		if err != nil {
			return err
		}
		members = append(members, member)
	}
	bag, err := baggage.New(members...)
	if err != nil {
		return err
	}
	outgoing, err := http.NewRequest("GET", query.Get("to"), nil)
	if err != nil {
		return err
	}
	form.Inject(baggage.ContextWithBaggage(ctx, bag), propagation.HeaderCarrier(outgoing.Header))
	response, err := http.DefaultClient.Do(outgoing)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(answer, response.Body)
	return err
}

func main() {
	form := propagators[os.Args[1]]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	http.HandleFunc("/send", func(answer http.ResponseWriter, request *http.Request) {
		if err := send(form, request, answer); err != nil {
			json.NewEncoder(answer).Encode(map[string]string{"fault": err.Error()})
		}
	})
	http.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		json.NewEncoder(answer).Encode(see(form, request))
	})
	go http.Serve(listener, nil)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}
