/* SPDX-License-Identifier: Apache-2.0 */
/* otel/otel.hpp - otel-c for C++17 and newer: scopes, string_view, exceptions. Header-only, over
 * the C headers, whose contracts hold; what is not here is called as in C.
 *
 *     otel::scoped_span span(tracer, "charge");      current until the end of the block
 *     span.set("payment.cents", cents);
 *
 * Cost:       the instructions of the same code in C: integration.cpp compares them.
 * Exceptions: otel::traced records what leaves a span, with type and message; otel::exception_guard
 *             that something did; a scoped_span only ends. -fno-exceptions and -fno-rtti work. */
#ifndef OTEL_OTEL_HPP
#define OTEL_OTEL_HPP
#if __cplusplus < 201703L
#error "otel/otel.hpp needs C++17; the headers of C need C++11"
#endif
#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <optional>
#include <otel/ffi.h>
#include <otel/otel.h>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace otel {
/* Options that say nothing yet, for example otel::options<otel_sdk_options>(). */
template <class Options> Options options()
{
    Options none{};
    none.size = sizeof none;
    return none;
}

/* Of a span: otel::span_options(OTEL_SPAN_KIND_SERVER, &parent). Other members are assigned. */
struct span_options : otel_span_options {
    explicit span_options(otel_span_kind span_kind = OTEL_SPAN_KIND_INTERNAL,
                          const otel_context *span_parent = nullptr)
        : otel_span_options(options<otel_span_options>())
    {
        kind = span_kind;
        parent = span_parent;
    }
};

template <class T> std::string_view text_of(const T &from)
{
    if constexpr (std::is_pointer_v<T>) /* null is empty, as in C */
        return from ? std::string_view(from) : std::string_view();
    else
        return from;
}

/* A value of a bool, an integer, a floating-point number, a text, or an otel_value. Borrows. */
template <class T> otel_value value(const T &from)
{
    if constexpr (std::is_same_v<T, otel_value>)
        return from;
    else if constexpr (std::is_same_v<T, bool>)
        return otel_value_bool(from);
    else if constexpr (std::is_integral_v<T>)
        return otel_value_int(static_cast<int64_t>(from));
    else if constexpr (std::is_floating_point_v<T>)
        return otel_value_double(static_cast<double>(from));
    else
        return otel_value_string_n(text_of(from).data(), text_of(from).size());
}

/* For options, events and links: {otel::attribute("retries", 3), …}. */
template <class T> otel_attribute attribute(std::string_view key, const T &from)
{
    return otel_attribute_n(key.data(), key.size(), value(from));
}
using attributes = std::initializer_list<otel_attribute>;

/* Never null; keep it. */
inline otel_tracer *tracer(std::string_view name, std::string_view version = {})
{
    return otel_tracer_get_p(name.data(), name.size(), version.data(), version.size(), nullptr);
}

/* What the type of an exception is called, to be freed; null without RTTI. */
inline char *type_name([[maybe_unused]] const std::exception &error) noexcept
{
#if defined(__cpp_rtti)
    return abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, nullptr);
#else
    return nullptr;
#endif
}

/* A view of a span: copy it; its destructor does not end the span. */
class span_ref {
  public:
    span_ref(const otel_span &span) noexcept : span_(span) {}
    static span_ref current() noexcept { return otel_current_span(); }
    const otel_span &get() const noexcept { return span_; }
    otel_span_context context() const noexcept { return otel_span_get_context(span_); }
    bool is_recording() const noexcept { return otel_span_is_recording(span_); }
    template <class T> void set(std::string_view key, const T &from) const noexcept
    {
        if (!(span_.opaque[3] & OTEL_SPAN_IS_RECORDING_))
            return;
        const otel_span_ref ref = otel_span_ref_of(&span_);
        if constexpr (std::is_same_v<T, bool>)
            otel_span_set_bool_n(ref, key.data(), key.size(), from);
        else if constexpr (std::is_integral_v<T>)
            otel_span_set_int_n(ref, key.data(), key.size(), static_cast<int64_t>(from));
        else if constexpr (std::is_floating_point_v<T>)
            otel_span_set_double_n(ref, key.data(), key.size(), static_cast<double>(from));
        else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
            const std::string_view text = text_of(from);
            otel_span_set_string_n(ref, key.data(), key.size(), text.data(), text.size());
        } else
            otel_span_set_value_n(ref, key.data(), key.size(), &from);
    }
    void add_event(std::string_view name, attributes about = {}, uint64_t at_ns = 0) const noexcept
    {
        otel_span_add_event_p(&span_, name.data(), name.size(), at_ns, about.begin(), about.size());
    }
    void add_link(const otel_span_context &to, attributes about = {}) const noexcept
    {
        const otel_link link = {to, about.begin(), about.size()};
        otel_span_add_link(span_, &link);
    }
    void set_status(otel_span_status status, std::string_view description = {}) const noexcept
    {
        otel_span_set_status_p(&span_, status, description.data(), description.size());
    }
    void fail(std::string_view why = {}) const noexcept { set_status(OTEL_SPAN_STATUS_ERROR, why); }
    void update_name(std::string_view name) const noexcept
    {
        otel_span_update_name_p(&span_, name.data(), name.size());
    }
    /* An event "exception", with the type where there is RTTI. Does not set the status. */
    void record(const std::exception &error, attributes about = {}) const noexcept
    {
        char *type = type_name(error);
        otel_span_record_exception(span_, type, error.what(), nullptr, about.begin(), about.size());
        std::free(type);
    }
    void end(uint64_t end_ns = 0) const noexcept { otel_span_end_at(span_, end_ns); }
    void cancel() const noexcept { otel_span_cancel(span_); }
    void end_unless_shorter(uint64_t ns) const noexcept { otel_span_end_unless_shorter(span_, ns); }

  protected:
    span_ref() = default; /* what derives from it begins the span in its place */
    template <auto Begin>
    void put(otel_tracer *t, std::string_view name, const otel_span_options *how = {}) noexcept
    {
        if (!(how && how->parent) && otel_is_idle_())
            span_ = otel_span_none_();
        else
            Begin(&span_, t, name.data(), name.size(), how);
    }
    otel_span span_;
};

/* A span that is current on its thread, and ends, with the block: OTEL_SCOPED. */
class scoped_span : public span_ref {
  public:
    scoped_span(otel_tracer *t, std::string_view name) noexcept { put<otel_span_enter_p>(t, name); }
    scoped_span(otel_tracer *t, std::string_view name, const otel_span_options &how) noexcept
    {
        put<otel_span_enter_p>(t, name, &how);
    }
    scoped_span(scoped_span &&) = delete;
    ~scoped_span()
    {
        if (span_.opaque[3] & OTEL_SPAN_IS_OPEN_)
            otel_span_end_scope_n(otel_span_ref_of(&span_));
    }
};

/* A span that any thread may use, and that is never current by itself; ends with its last owner. */
class span : public span_ref {
  public:
    span() noexcept : span_ref(otel_span_none_()) {}
    explicit span(const otel_span &made) noexcept : span_ref(made) {} /* takes what C has made */
    span(otel_tracer *t, std::string_view name) noexcept { put<otel_span_start_p>(t, name); }
    span(otel_tracer *t, std::string_view name, const otel_span_options &how) noexcept
    {
        put<otel_span_start_p>(t, name, &how);
    }
    span(span &&from) noexcept : span_ref(from.release()) {}
    span &operator=(span &&from) noexcept
    {
        end();
        span_ = from.release();
        return *this;
    }
    ~span() { end(); }
    /* Give the handle away: its new owner ends the span. */
    otel_span release() noexcept { return std::exchange(span_, otel_span_none_()); }
};

/* A context, or the current one with another span, that is current until the end of the block. */
class scope {
  public:
    explicit scope(const otel_context &context) noexcept : token_(otel_context_attach(context)) {}
    explicit scope(const span_ref &span) noexcept
        : scope(otel_context_with_span(otel_current_context(), span.get()))
    {
    }
    scope(scope &&) = delete;
    ~scope() { otel_context_detach(token_); }

  private:
    otel_context_token token_;
};

/* Headers by objects that can be called, for otel/propagate.h and otel/http.h, where the object is
 * the carrier, not const: get(name, index), or get(name) for the only one, gives an optional
 * string_view of what stays until the next; set(name, text). Lower-case names. No exceptions. */
template <class Get> const char *get_header(void *from, const char *name, size_t i, size_t *length)
{
    std::optional<std::string_view> text;
    if constexpr (std::is_invocable_v<Get &, std::string_view, size_t>)
        text = (*static_cast<Get *>(from))(std::string_view(name), i);
    else if (i == 0)
        text = (*static_cast<Get *>(from))(std::string_view(name));
    *length = text ? text->size() : 0;
    return !text ? nullptr : text->data() ? text->data() : "";
}
template <class Set> void set_header(void *to, const char *name, const char *text, size_t length)
{
    (*static_cast<Set *>(to))(std::string_view(name), std::string_view(text, length));
}

/* The current context, or another, to and from headers, by copies of set and get: or std::ref. */
template <class Set> void inject(Set set, const otel_context *context = nullptr)
{
    otel_inject(context, set_header<Set>, &set);
}
template <class Get> otel_context extract(Get get, const otel_context *context = nullptr)
{
    return otel_extract(context, get_header<Get>, &get);
}

/* A context with this entry in its baggage; and the value in the current one's, or another's. */
inline otel_context with_baggage(const otel_context &context, std::string_view name,
                                 std::string_view text)
{
    otel_baggage baggage = otel_context_baggage(&context);
    otel_baggage_set_p(&baggage, &baggage, name.data(), name.size(), text.data(), text.size(),
                       nullptr, 0);
    return otel_context_with_baggage(context, baggage);
}
inline std::optional<std::string> baggage(std::string_view name,
                                          const otel_context *context = nullptr)
{
    const otel_baggage all = otel_context_baggage(context);
    const size_t length = otel_baggage_get_p(&all, name.data(), name.size(), nullptr, 0);
    if (length == SIZE_MAX)
        return std::nullopt;
    std::string text(length, '\0');
    otel_baggage_get_p(&all, name.data(), name.size(), text.data(), length + 1);
    return text;
}

/* Declared behind a span: when an exception leaves the block, the span gets the status Error. What
 * the exception is cannot be known here. */
class exception_guard {
  public:
    explicit exception_guard(const span_ref &of) noexcept : span_(of) {}
    exception_guard(exception_guard &&) = delete;
    ~exception_guard()
    {
        if (std::uncaught_exceptions() > before_)
            span_.fail("left by an exception");
    }

  private:
    span_ref span_;
    int before_ = std::uncaught_exceptions();
};

/* Call work(span) in a span of its own; an exception that leaves it is recorded, and goes on. */
template <class Work> decltype(auto) traced(otel_tracer *from, std::string_view name, Work &&work)
{
    const scoped_span span(from, name);
#if defined(__cpp_exceptions)
    try {
        return work(static_cast<const span_ref &>(span));
    } catch (const std::exception &error) {
        span.record(error);
        span.fail(error.what());
        throw;
    } catch (...) {
        span.fail("an exception that is no std::exception");
        throw;
    }
#else
    return work(static_cast<const span_ref &>(span));
#endif
}
} // namespace otel
#endif
