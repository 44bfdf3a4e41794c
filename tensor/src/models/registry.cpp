#include "alloclab/tensor/models/registry.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

namespace alloclab::tensor {

namespace {

constexpr auto all = [] {
    std::array<model_info,
               llama_shapes.size() + llama_small_shapes.size() + whisper_shapes.size() + whisper_small_shapes.size()>
        list{};
    auto next = list.begin();
    const auto append = [&](const auto& shapes, std::string_view family, bool full) {
        for (const auto& s : shapes) *next++ = {s.name, family, full, &s};
    };
    append(llama_shapes, "llama", true);
    append(llama_small_shapes, "llama", false);
    append(whisper_shapes, "whisper", true);
    append(whisper_small_shapes, "whisper", false);
    return list;
}();

struct llama_parts {
    llama_model model;
    kv_cache cache;
};
struct whisper_parts {
    whisper_model model;
    whisper_state state;
};

std::int32_t capacity_of(const model_info& m) noexcept {
    if (const auto* llama = std::get_if<const llama_shape*>(&m.shape)) return (*llama)->context;
    return (*std::get_if<const whisper_shape*>(&m.shape))->text_context;
}

std::size_t max_nodes(const model_info& m) noexcept {
    if (const auto* llama = std::get_if<const llama_shape*>(&m.shape)) return llama_max_nodes(**llama);
    return whisper_max_nodes(**std::get_if<const whisper_shape*>(&m.shape));
}

}  // namespace

std::span<const model_info> models() noexcept { return all; }

const model_info* find_model(std::string_view name) noexcept {
    const auto found = std::find_if(all.begin(), all.end(), [&](const model_info& m) { return m.name == name; });
    return found != all.end() ? &*found : nullptr;
}

bool has_phase(const model_info& m, phase p) noexcept {
    return p != phase::encode || std::holds_alternative<const whisper_shape*>(m.shape);
}

struct loaded_model::parts {
    parts(const model_info& info, std::uint64_t noise_seed, std::size_t bytes_behind_tensor)
        : context_of_leaves({.growing = growth{}, .no_alloc = info.full, .bytes_behind_tensor = bytes_behind_tensor},
                            any_source(source)),
          seed(noise_seed) {
        if (const auto* llama = std::get_if<const llama_shape*>(&info.shape)) {
            auto& [model, cache] = family.emplace<llama_parts>(
                llama_parts{new_llama(context_of_leaves, **llama), new_llama_cache(context_of_leaves, **llama)});
            weights = model.leaves;
            caches = cache.leaves;
        } else {
            const whisper_shape& s = *std::get<const whisper_shape*>(info.shape);
            auto& [model, state] = family.emplace<whisper_parts>(
                whisper_parts{new_whisper(context_of_leaves, s), new_whisper_state(context_of_leaves, s)});
            weights = model.leaves;
            caches = state.self.leaves;
            caches.insert(caches.end(), state.cross.leaves.begin(), state.cross.leaves.end());
        }
        if (info.full) return;
        fill(weights, seed);
        fill_caches();
    }

    void fill_caches() noexcept { fill(caches, ~seed); }

    tensor* build(context& c, graph& g, phase p, batch b) {
        const auto* llama = std::get_if<llama_parts>(&family);
        const auto* whisper = std::get_if<whisper_parts>(&family);
        if (p == phase::encode) {
            const whisper_encoder_step step = build_whisper_encoder(c, g, whisper->model, whisper->state);
            inputs[0] = {step.mel, mel.data()};
            input_count = 1;
            return step.audio;
        }
        const decoder_step step = llama != nullptr ? build_llama(c, g, llama->model, llama->cache, b)
                                                   : build_whisper_decoder(c, g, whisper->model, whisper->state, b);
        inputs = values.of(step);
        input_count = inputs.size();
        return step.logits;
    }

    malloc_source source;
    context context_of_leaves;
    std::uint64_t seed;
    std::variant<llama_parts, whisper_parts> family;
    std::vector<leaf> weights, caches;

    phase prepared = phase::decode;
    batch next;
    context_need need;
    decoder_values values{{}, {}};
    std::vector<float> mel;
    std::array<input_value, 3> inputs{};
    std::size_t input_count = 0;
};

loaded_model::loaded_model(const model_info& info, std::uint64_t seed, std::size_t bytes_behind_tensor)
    : info_(info), parts_(std::make_unique<parts>(info, seed, bytes_behind_tensor)) {
    prepare(phase::decode, {1, capacity_of(info) / 2});
}
loaded_model::~loaded_model() = default;

void loaded_model::prepare(phase p, batch b) {
    if (!has_phase(info_, p)) throw std::invalid_argument(std::string(info_.name) + " has nothing to encode");
    parts& of = *parts_;
    of.need = need_of(std::string(info_.name), max_nodes(info_), [&](context& c, graph& g) { of.build(c, g, p, b); });
    of.prepared = p;
    of.next = b;
    of.input_count = 0;
    if (info_.full) return;

    if (p == phase::encode) {
        const whisper_shape& s = *std::get<const whisper_shape*>(info_.shape);
        of.mel.resize(static_cast<std::size_t>(2 * s.audio_context) * static_cast<std::size_t>(s.mels));
        for (std::size_t i = 0; i < of.mel.size(); ++i) of.mel[i] = static_cast<float>(i * 37 % 101) / 64.0F - 0.75F;
    } else {
        std::vector<std::int32_t> ids(static_cast<std::size_t>(b.tokens));
        for (std::size_t i = 0; i < ids.size(); ++i)
            ids[i] = static_cast<std::int32_t>((static_cast<std::size_t>(b.past) + i) * 31 % 251);
        of.values = decoder_values(b, ids);
    }
}

const context_need& loaded_model::need() const noexcept { return parts_->need; }

tensor* loaded_model::build(context& c, graph& g) { return parts_->build(c, g, parts_->prepared, parts_->next); }

std::span<const input_value> loaded_model::inputs() const noexcept {
    return std::span(parts_->inputs).first(parts_->input_count);
}
std::span<const leaf> loaded_model::weights() const noexcept { return parts_->weights; }
std::span<const leaf> loaded_model::caches() const noexcept { return parts_->caches; }

void loaded_model::reset_caches() noexcept {
    if (!info_.full) parts_->fill_caches();
}

context_need decode_need(const model_info& m) {
    return loaded_model(m).need();  // prepared for a decode in the middle of the context
}

}  // namespace alloclab::tensor
