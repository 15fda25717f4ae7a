/* SPDX-License-Identifier: Apache-2.0 */
/* tests/integration/cpp/behaviour.cpp - specification of otel/otel.hpp. cpp.sh compiles it in
 * several languages, without exceptions and RTTI too. */
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <otel/http.h>
#include <otel/memory.h>
#include <otel/otel.hpp>
#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

static otel_memory *memory;
static otel_tracer *tracer;

#define CHECK(what)                                                             \
    if (!(what)) {                                                              \
        std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
        std::exit(1);                                                           \
    }

static std::string_view text_of(const otel_slice &slice)
{
    return {slice.data, slice.length};
}

/* The attribute of a message's attributes, as text; a number by its decimal digits. */
static std::string attribute_of(otel_slice rest, uint32_t field, std::string_view key)
{
    otel_attribute_view view;
    while (otel_attribute_next(&rest, field, &view))
        if (text_of(view.key) == key)
            return view.value.type == OTEL_VALUE_STRING ? std::string(text_of(view.value.slice))
                   : view.value.type == OTEL_VALUE_BOOL ? (view.value.boolean ? "true" : "false")
                   : view.value.type == OTEL_VALUE_INT  ? std::to_string(view.value.integer)
                                                        : std::to_string(view.value.real);
    return "none";
}

/* The only span that has arrived since the last call. */
static otel_span_view next_span()
{
    static size_t seen;
    otel_span_view span;
    CHECK(otel_flush(60000) == OTEL_OK);
    CHECK(otel_memory_count(memory) == seen + 1);
    CHECK(otel_memory_span(memory, seen++, &span));
    return span;
}

static otel_event_view event_of(otel_span_view span)
{
    otel_event_view event;
    CHECK(otel_event_next(&span.events, &event));
    return event;
}

static bool is_current(const otel::span_ref &span)
{
    const otel_span_context a = otel::span_ref::current().context();
    const otel_span_context b = span.context();
    return std::string_view(reinterpret_cast<const char *>(a.span_id), 8) ==
           std::string_view(reinterpret_cast<const char *>(b.span_id), 8);
}

static void values_have_the_type_that_they_have_in_cpp()
{
    {
        const std::string text = "text";
        otel::scoped_span span(tracer, "a name and more" + text, otel::span_options());
        span.update_name(std::string_view("short and more").substr(0, 5));
        span.set("bool", true);
        span.set("int", 7u);
        span.set("double", 0.5f);
        span.set("literal", "text");
        span.set("string", text);
        span.set("null", static_cast<const char *>(nullptr));
        span.set("null value", otel::value(static_cast<const char *>(nullptr)));
        span.set(std::string_view("viewed").substr(0, 4), std::string_view("text").substr(0, 2));
        span.set("value", otel::value(-1));
        CHECK(span.is_recording() && is_current(span));
    }
    const otel_span_view span = next_span();
    CHECK(text_of(span.name) == "short");
    CHECK(attribute_of(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "bool") == "true");
    CHECK(attribute_of(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "int") == "7");
    CHECK(attribute_of(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "double") == "0.500000");
    CHECK(attribute_of(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "literal") == "text");
    CHECK(attribute_of(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "string") == "text");
    CHECK(attribute_of(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "null").empty());
    CHECK(attribute_of(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "null value").empty());
    CHECK(attribute_of(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "view") == "te");
    CHECK(attribute_of(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "value") == "-1");
}

static void a_detached_span_ends_with_its_last_owner()
{
    {
        otel::span outer;
        {
            otel::span inner(tracer, "inner", otel::span_options(OTEL_SPAN_KIND_CLIENT));
            CHECK(!is_current(inner));
            outer = std::move(inner);
            CHECK(!inner.is_recording());
        }
        CHECK(outer.is_recording());
        const otel::scope scope(outer);
        CHECK(is_current(outer));
        otel::span moved(std::move(outer));
        CHECK(moved.is_recording());
    }
    CHECK(!otel::span_ref::current().is_recording());
    CHECK(next_span().kind == OTEL_SPAN_KIND_CLIENT);
    otel::span given(tracer, "given");
    const otel_span handle = given.release();
    CHECK(!given.is_recording() && otel_span_is_recording(handle));
    otel_span_end(handle);
    (void)next_span();
}

static void contexts_and_baggage_travel_in_headers()
{
    std::map<std::string, std::string, std::less<>> headers;
    {
        const otel::scoped_span span(tracer, "client");
        const otel_context context = otel::with_baggage(otel_current_context(), "user",
                                                        std::string_view("ada!").substr(0, 3));
        otel::inject([&](std::string_view name,
                         std::string_view text) { headers[std::string(name)] = text; },
                     &context);
    }
    const otel_span_view client = next_span();
    const otel_context context =
        otel::extract([&](std::string_view name) -> std::optional<std::string_view> {
            const auto found = headers.find(name);
            if (found == headers.end())
                return std::nullopt;
            return found->second;
        });
    CHECK(headers.size() == 2);
    CHECK(otel::baggage("user", &context) == "ada");
    CHECK(!otel::baggage("other", &context));
    const otel_span_context names = otel_span_get_context(context.span);
    CHECK(names.is_remote && text_of(client.name) == "client");
    {
        const otel::scope scope(context);
        CHECK(otel::baggage("user") == "ada");
    }
    CHECK(!otel::baggage("user"));
}

/* A header that is there twice is asked for by number. Callable objects are carriers of C. */
static void http_is_called_as_in_c()
{
    static const char *const parents[] = {
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-01",
    };
    size_t count = 1;
    auto get = [&](std::string_view name, size_t index) -> std::optional<std::string_view> {
        if (name == "host" && index == 0)
            return std::string_view(); /* there, and empty */
        if (name != "traceparent" || index >= count)
            return std::nullopt;
        return parents[index];
    };
    auto options = otel::options<otel_http_options>();
    options.get_header = otel::get_header<decltype(get)>;
    options.carrier = &get;
    {
        const otel::span span(otel_http_server_enter(tracer, "GET", "/items/7", &options));
        CHECK(is_current(span));
        otel_http_server_end(span.get(), 200, nullptr);
    }
    const otel_span_view served = next_span();
    CHECK(text_of(served.name) == "GET" && served.parent_span_id[7] == 0x31);
    CHECK(otel::extract(get).span.opaque[0] != 0);
    count = 2; /* two that differ are none */
    CHECK(otel::extract(get).span.opaque[0] == 0);
    std::map<std::string, std::string, std::less<>> headers;
    auto set = [&](std::string_view name, std::string_view text) {
        headers[std::string(name)] = text;
    };
    options = otel::options<otel_http_options>();
    options.set_header = otel::set_header<decltype(set)>;
    options.carrier = &set;
    const otel::span call(otel_http_client_start(tracer, "GET", "http://e/", &options));
    CHECK(headers.count("traceparent") == 1);
    call.end();
    CHECK(next_span().kind == OTEL_SPAN_KIND_CLIENT);
}

static void events_links_and_status_are_said()
{
    {
        const otel::scoped_span span(tracer, "span");
        span.add_event("event", {otel::attribute(std::string_view("keys").substr(0, 3), 1)});
        span.add_link(span.context());
        span.fail("it broke");
    }
    const otel_span_view span = next_span();
    CHECK(span.status == OTEL_SPAN_STATUS_ERROR && text_of(span.status_message) == "it broke");
    otel_slice links = span.links;
    otel_link_view link;
    CHECK(attribute_of(event_of(span).attributes, OTEL_FIELD_EVENT_ATTRIBUTE, "key") == "1");
    CHECK(otel_link_next(&links, &link) && link.span_id[0] == span.span_id[0]);
}

#if defined(__cpp_exceptions)
struct out_of_stock : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static void an_exception_is_recorded_and_goes_on()
{
    bool caught = false;
    try {
        otel::traced(tracer, "span",
                     [](const otel::span_ref &) { throw out_of_stock("no unicorn"); });
    } catch (const out_of_stock &) {
        caught = true;
    }
    CHECK(caught);
    const otel_span_view span = next_span();
    CHECK(span.status == OTEL_SPAN_STATUS_ERROR && text_of(span.status_message) == "no unicorn");
    CHECK(attribute_of(event_of(span).attributes, OTEL_FIELD_EVENT_ATTRIBUTE,
                       "exception.message") == "no unicorn");
#if defined(__cpp_rtti)
    CHECK(attribute_of(event_of(span).attributes, OTEL_FIELD_EVENT_ATTRIBUTE, "exception.type") ==
          "out_of_stock");
#endif
}

/* A span that is made while an exception is on its way, and not left by one. */
struct cleanup {
    ~cleanup()
    {
        const otel::scoped_span span(tracer, "cleanup");
        const otel::exception_guard guard(span);
    }
};

static void a_guard_tells_a_span_that_an_exception_left_it()
{
    try {
        const otel::scoped_span span(tracer, "span");
        const otel::exception_guard guard(span);
        throw 1;
    } catch (int) {
    }
    const otel_span_view left = next_span();
    CHECK(left.status == OTEL_SPAN_STATUS_ERROR && left.events.length == 0);
    {
        const otel::scoped_span span(tracer, "span");
        const otel::exception_guard guard(span);
    }
    CHECK(next_span().status == OTEL_SPAN_STATUS_UNSET);
    try {
        const cleanup cleanup;
        throw 1;
    } catch (int) {
    }
    CHECK(next_span().status == OTEL_SPAN_STATUS_UNSET);
}
#endif

static void what_is_traced_gives_its_result()
{
    const int four = otel::traced(tracer, "span", [](const otel::span_ref &span) {
        span.set("two", 2);
        return 4;
    });
    CHECK(four == 4);
    CHECK(attribute_of(next_span().attributes, OTEL_FIELD_SPAN_ATTRIBUTE, "two") == "2");
}

int main()
{
    static_assert(!std::is_move_constructible_v<otel::scoped_span>);
    static_assert(!std::is_copy_constructible_v<otel::span> &&
                  std::is_nothrow_move_constructible_v<otel::span>);
    static_assert(sizeof(otel::scoped_span) == sizeof(otel_span));
    memory = otel_memory_new();
    CHECK(memory != nullptr);
    const otel_exporter exporter = otel_memory_exporter(memory);
    auto options = otel::options<otel_sdk_options>();
    options.traces_exporter = "none";
    options.exporters = &exporter;
    options.exporter_count = 1;
    CHECK(otel_start(&options) == OTEL_OK);
    tracer = otel::tracer(std::string_view("shop and more").substr(0, 4), "1.0");
    CHECK(tracer == otel_tracer_get("shop", "1.0"));
    values_have_the_type_that_they_have_in_cpp();
    a_detached_span_ends_with_its_last_owner();
    contexts_and_baggage_travel_in_headers();
    http_is_called_as_in_c();
    events_links_and_status_are_said();
    what_is_traced_gives_its_result();
#if defined(__cpp_exceptions)
    an_exception_is_recorded_and_goes_on();
    a_guard_tells_a_span_that_an_exception_left_it();
#endif
    CHECK(otel_shutdown(60000) == OTEL_OK);
    otel_memory_free(memory);
}
