"""The mistakes. Edits quote the source literally: when it changes, `tests/privacy/test_planted.py` says so at once."""

from __future__ import annotations

from bench.planted.harness import Bug

NOISE = "workers/mechanism/noise.py"
WHOLE = "workers/numerics/discrete_gaussian.py"
WHOLE_LOOPS = "workers/numerics/discrete_gaussian.c"
CLIPPING = "workers/mechanism/clipping.py"
SAMPLING = "workers/mechanism/sampling.py"
PUBLIC_DATASETS = "service/datasets/public.py"
WORKER_PUBLIC_START = "workers/public_start.py"
PUBLIC_FROM_UPLOAD = "migrations/versions/0026_public_from_the_upload.py"
UPLOAD_DECLARATION = "service/datasets/declaration.py"
T_PUBLIC_DATASETS = "tests/service/http/test_public_datasets.py"
T_PUBLIC_ERASED = "tests/service/http/test_public_rows_erased.py"
T_PUBLIC_START = "tests/workers/methods/idpgan/test_public_start.py"
T_PUBLIC_ROWS = "tests/workers/methods/idpgan/test_public_rows.py"
T_ALSO_READS = "tests/service/methods/test_also_reads.py"
GANOBFUSCATOR = "service/methods/ganobfuscator/__init__.py"
JOINT_CLIPPING = "workers/mechanism/joint_clipping.py"
GSWGAN = "workers/methods/gswgan/run.py"
GSWGAN_ORDER = "service/methods/gswgan/order.py"
GSWGAN_PRICE = "service/methods/gswgan/price.py"
DRAWN_PARTS = "service/privacy/drawn_parts.py"
T_GSWGAN = "tests/workers/methods/gswgan/test_gswgan.py"
T_DRAWN_PARTS = "tests/service/privacy/test_drawn_parts.py"
RANDOM = "workers/mechanism/secure_random.py"
THRESHOLDS = "workers/mechanism/thresholds.py"
LABELS = "workers/mechanism/label_counts.py"
TABLES = "workers/mechanism/marginals.py"
RELEASES = "workers/methods/marginals/measure/releases.py"
FIRST_LOOK = "workers/methods/marginals/measure/first_look.py"
METHOD = "workers/methods/marginals/method.py"
VMAP = "workers/mechanism/gradients.py"
OUTER = "workers/mechanism/outer_products.py"
LOOPS = "workers/numerics/perceptron.c"
QUEUE = "migrations/versions/0011_fair_queue.py"
T_QUEUE = "tests/workers/test_fair_claims.py"
SUMS = "workers/numerics/sums.c"
CONVOLUTIONS = "workers/mechanism/convolutions/unit_gradients.py"
REPLAYS = "workers/numerics/replays.py"
REPLAYED = "workers/engines/replayed.py"
IDPGAN = "workers/methods/idpgan/training.py"
RUN_LABELS = "workers/methods/labels.py"
PLACES = "workers/encoding/places.py"
CHECKPOINTS = "workers/checkpoints.py"
CODED = "workers/methods/rdpcgan/coded.py"
CODERS = "workers/networks/autoencoder.py"
RDPCGAN_PRICE = "service/methods/rdpcgan/price.py"
T_CODED = "tests/workers/methods/rdpcgan/test_coded_tables.py"
T_RDPCGAN_PRICE = "tests/service/methods/rdpcgan/test_rdpcgan_price.py"
PATEGAN = "workers/methods/pategan/run.py"
TEACHERS = "workers/methods/pategan/teachers.py"
VOTES = "workers/mechanism/votes.py"
T_TEACHERS = "tests/workers/methods/pategan/test_teachers.py"
T_VOTES = "tests/workers/mechanism/test_votes.py"
STEP_MAPS = "workers/methods/idpgan/step_knobs/maps.py"
STEP_SUBSPACE = "workers/methods/idpgan/step_knobs/subspace.py"
T_STEP_KNOBS = "tests/workers/methods/idpgan/test_private_step_knobs.py"
T_STEP_ORDERS = "tests/service/methods/test_private_step_orders.py"
TABLE_IDPGAN = "workers/methods/idpgan/tables.py"
PLAN = "workers/plan.py"
RUN = "workers/run.py"
KEPT = "workers/kept.py"
CHILD = "workers/child.py"
GAN_WORK = "service/methods/idpgan/work.py"
T_CHARGED_REPORT = "tests/workers/reports/test_charged.py"
HELD_OUT = "workers/held_out.py"
ACCURACY = "workers/reports/accuracy.py"
T_NOT_MADE = "tests/service/http/test_reports_not_made.py"
T_HELD_OUT_API = "tests/service/http/test_held_out_api.py"
T_HELD_OUT_CONTRACT = "tests/privacy/test_contracts_held_out.py"
T_ACCURACY = "tests/workers/reports/test_accuracy.py"
T_SPELLED = "tests/service/intake/table/test_spelled_cells.py"
T_CHILD = "tests/workers/test_child.py"
T_SIGN_ON = "tests/service/pages/test_single_sign_on.py"
HOOKS = "workers/hooks.py"
RUNNING = "imprimatur/running.py"
T_RUNNING = "tests/imprimatur/test_running.py"
PUBLIC = "workers/methods/ganobfuscator/public.py"
T_COMPARISONS = "tests/workers/methods/ganobfuscator/test_comparisons.py"
ENCODING = "workers/encoding/table.py"
EVENT_KINDS = "service/privacy/event_kinds.py"
MECHANISMS = "service/privacy/mechanisms.py"
CALIBRATION = "service/privacy/calibration.py"
PRICING = "service/methods/pricing.py"
GAN_PRICE = "service/methods/idpgan/price.py"
MARGINALS_PRICE = "service/methods/marginals/price.py"
ACCOUNTING = "service/privacy/accounting.py"
LOSSES = "service/privacy/losses.py"
LOSS_CELLS = "service/privacy/loss_cells.py"
FILTERS = "service/privacy/filters.py"
STATEMENTS = "service/privacy/statements.py"
DATASETS = "service/datasets/service.py"
KNOWN_ROWS = "service/datasets/known_rows.py"
CERTIFICATE = "workers/certificate.py"
DRAFT = "service/intake/table/draft.py"
DECIDE = "service/intake/table/drafting/decide.py"
FIRST_LINE = "service/intake/table/first_line.py"
DRAFTS = "service/domain/drafts.py"
STAGING = "service/datasets/staging.py"
DOORS = "service/pages/doors.py"
T_ATTACKS = "tests/workers/reports/test_attacks.py"
T_REPORT_PAGES = "tests/service/pages/test_report_pages.py"
T_WALK = "tests/service/pages/test_upload_walk.py"
T_REPEATING_IDS = "tests/service/pages/test_repeating_ids_pages.py"
T_BUYING_PAGES = "tests/service/pages/test_buying_pages.py"
T_PUBLIC_PAGES = "tests/service/pages/test_public_rows_pages.py"
FREED = "migrations/versions/0018_rows_that_nothing_was_ordered_from.py"

DECLARATIONS = "migrations/versions/0008_replaced_declarations.py"
PROMISED = "migrations/versions/0029_what_is_promised_holds.py"
T_PROMISED = "tests/service/test_what_is_promised.py"
BOUND = "migrations/versions/0030_bound_to_their_names.py"
STORED = "service/datasets/stored_objects.py"
T_COPIED = "tests/service/http/test_copied_objects.py"
T_SIGN_IN = "tests/service/pages/test_sign_in.py"
T_FITTING = "tests/workers/test_fitting.py"
ROLES = "migrations/versions/0010_three_roles.py"
LAST_ROLE = "migrations/versions/0015_old_role_without_rights.py"
LOCKS = "migrations/versions/0019_locks_of_functions.py"
T_ROLES = "tests/service/test_roles.py"
T_ROTATION = "tests/service/upkeep/test_rotation.py"
DATASET_ROWS = "service/datasets/repository.py"
T_RACES = "tests/service/ledger/test_redeclaration_races.py"
T_REDECLARATION = "tests/service/http/test_redeclaration.py"

COLUMN_FINGERPRINT = "service/intake/table/column_fingerprint.py"
ALIKE = "service/intake/table/alike.py"
INGEST_CHILD = "service/intake/child.py"
INGEST_PARENT = "service/intake/ingest.py"
SANDBOX = "service/intake/sandbox/__init__.py"
SEALED = "service/intake/sealed.py"
SPOOL = "service/requests/spool.py"
TURNS = "service/requests/turns.py"
INHERITED = "pass_fds=[n for n in range(3, 256) if Path(f'/proc/self/fd/{n}').is_symlink()],"
T_SANDBOX = "tests/service/intake/test_sandbox.py"
T_SEALED = "tests/service/intake/test_sealed.py"
GEOMETRIC = "workers/mechanism/geometric.py"
EXPONENTIAL = "workers/mechanism/exponential.py"
NOISY_MAXIMUM = "workers/mechanism/noisy_maximum.py"
KEY_THRESHOLD = "workers/mechanism/key_threshold.py"
SMOOTH_MEDIAN = "workers/mechanism/smooth_median.py"
EXACT_GEOMETRIC = "workers/numerics/exact_geometric.py"
QUERY_ANSWERS = "workers/methods/queries/answering.py"
QUERY_PRICE = "service/methods/queries/price.py"
CHOOSE = "service/methods/choose/__init__.py"
CHOOSE_CHECK = "service/methods/choose/check.py"
CHOOSE_METHODS = "service/methods/choose/methods.py"
CHOOSE_PRICE = "service/methods/choose/price.py"
CHOOSE_PARTS = "workers/methods/choose/parts.py"
BY_PARTS = "workers/methods/choose/by_parts.py"
BY_REPEATING = "workers/methods/choose/by_repeating.py"
ERRORS = "workers/mechanism/errors.py"
ONE_OF = "service/privacy/one_of_events.py"
BUYING = "workers/methods/declaration/buying.py"
BUYING_PRICE = "service/methods/declaration/price.py"
OPEN_VALUES = "workers/encoding/values.py"
T_BUYING = "tests/workers/methods/declaration/test_buying.py"
T_BOUGHT = "tests/service/http/test_bought_declarations.py"
T_RUN_CONTRACT = "tests/workers/methods/test_run_contract.py"
T_CHOOSING = "tests/workers/methods/choose/test_choosing.py"
T_CHOOSE_PRICE = "tests/service/methods/choose/test_choose_price.py"
T_ANSWERS = "tests/workers/mechanism/test_statistics_of_answers.py"
T_QUERIES = "tests/workers/methods/queries/test_query_answers.py"
T_FAILURES = "tests/service/privacy/test_failures.py"
T_EXACT_GEOMETRIC = "tests/workers/numerics/test_exact_geometric.py"
T_LEAVING = "tests/service/http/test_leaving.py"
T_TURNS = "tests/service/requests/test_turns.py"
T_COLUMN_FINGERPRINT = "tests/service/intake/table/test_column_fingerprint.py"
UPLOADED_RELATIONS = "service/intake/table/relations.py"
T_UPLOADED_RELATIONS = "tests/service/intake/table/test_relations_at_upload.py"
T_SAME_ROWS = "tests/service/http/test_same_rows_api.py"

BLOCK_RUN = "workers/methods/dpgm/run.py"
BLOCK_CLUSTERS = "workers/methods/dpgm/clusters.py"
BLOCK_TRAINING = "workers/methods/dpgm/training.py"
BLOCK_PRICE = "service/methods/dpgm/price.py"
WHOLE_SUMS = "workers/methods/whole_sums.py"
T_EVENT_FIRST = "tests/workers/methods/test_event_before_rows.py"
T_BLOCK_ROWS = "tests/workers/methods/dpgm/test_block_rows.py"
T_BLOCKS = "tests/workers/methods/dpgm/test_block_neighbours.py"
T_PRIVATE_EM = "tests/workers/methods/dpsyn/test_private_em.py"
T_BLOCK_PRICE = "tests/service/methods/dpgm/test_block_price.py"
IMAGES = "workers/mechanism/image_moments.py"
IMAGE_MIXTURE = "workers/methods/mixture/measuring.py"
MIXTURE_PRICE = "service/methods/mixture/price.py"
IMAGE_IDPGAN = "workers/methods/idpgan/images.py"
UNIT_IDS = "service/intake/unit_ids.py"
IMAGE_UNITS = "service/intake/image/units.py"
T_IMAGES = "tests/privacy/test_contracts_images.py"
T_IMAGE_UNITS = "tests/privacy/test_contracts_image_units.py"
T_READ_IMAGE_UNITS = "tests/service/intake/image/test_image_units.py"
T_UNIT_IDS = "tests/service/intake/test_unit_ids.py"
T_BAD_FILES = "tests/service/intake/test_ingest_bad_files.py"
SINGLE_IMAGES = "workers/mechanism/image_coefficients.py"
T_SINGLE_IMAGES = "tests/privacy/test_contracts_single_images.py"
T_IMAGE_RELEASE = "tests/workers/methods/image_release/test_image_release_run.py"
T_IMAGE_ORDERS = "tests/service/methods/image_release/test_image_release_order.py"
T_RAPPOR = "tests/imprimatur/local/test_local_rappor.py"
T_IMAGE_MIXTURE = "tests/workers/test_image_mixture.py"
T_MIXTURE_PRICE = "tests/service/methods/mixture/test_mixture_price.py"
T_PREVIEWS = "tests/service/http/test_previews.py"

T_STATEMENTS = "tests/service/privacy/test_statements.py"
T_DATASETS = "tests/service/http/test_datasets_api.py"
T_CERTIFICATE_WARNINGS = "tests/workers/test_certificate_warnings.py"
T_DRAFT = "tests/service/intake/table/test_draft.py"
T_FINDINGS = "tests/service/intake/table/test_draft_findings.py"
T_WRONG = "tests/service/http/test_wrong_declarations.py"

T_CERTIFICATE = "tests/workers/test_certificate.py"

T_NOISE = "tests/workers/mechanism/test_noise.py"
T_WHOLE = "tests/workers/numerics/test_discrete_gaussian.py"
T_DISCRETE = "tests/privacy/test_discrete_noise.py"
T_CLIPPING = "tests/workers/mechanism/test_clipping.py"
T_GRADIENTS = "tests/workers/mechanism/test_gradients.py"
T_CONVOLUTIONS = "tests/privacy/test_contracts_convolutions.py"
T_KERNELS = "tests/workers/numerics/test_kernels.py"
T_RANDOM = "tests/workers/mechanism/test_secure_random.py"
T_LABELS = "tests/workers/mechanism/test_label_counts.py"
T_TABLES = "tests/workers/mechanism/test_marginals.py"
T_REPLAYED = "tests/workers/engines/test_replayed.py"
T_MARGINALS = "tests/workers/methods/marginals/test_marginals_method.py"
T_CHOICES = "tests/service/methods/test_choices.py"
T_IDPGAN = "tests/workers/methods/idpgan/test_idpgan.py"
T_WARM_START = "tests/workers/methods/idpgan/test_warm_start.py"
T_IMAGE_START = "tests/workers/methods/idpgan/test_image_start.py"
COPIES = "workers/mechanism/copies.py"
MIXTURE_SAMPLES = "workers/methods/idpgan/mixture_samples.py"
T_COPIES = "tests/workers/mechanism/test_copies.py"
T_IMAGE_COPIES = "tests/workers/methods/idpgan/test_image_copies.py"
T_MIXTURE_SAMPLES = "tests/workers/methods/idpgan/test_mixture_samples.py"
T_PLAN = "tests/workers/test_plan.py"
T_RESUME = "tests/workers/test_resume.py"
T_TABLE = "tests/workers/encoding/test_table.py"
T_CALIBRATION = "tests/service/privacy/test_calibration.py"
T_LOSSES = "tests/privacy/test_losses.py"
T_EVENTS = "tests/service/privacy/test_events.py"
T_EVENT_ORACLES = "tests/privacy/test_event_oracles.py"
T_ORACLES = "tests/privacy/test_oracles.py"
T_CHARGES = "tests/privacy/test_charges.py"
T_CONTRACTS = "tests/privacy/test_contracts_neighbours.py"
T_DISTRIBUTIONS = "tests/privacy/test_distributions.py"
T_AUDIT = "tests/privacy/test_audit.py"
T_RELEASE_ATTACKS = "tests/privacy/test_release_attacks.py"

MERKLE = "imprimatur/verify/merkle.py"
SIGNATURES = "imprimatur/verify/signatures.py"
VERIFICATION = "imprimatur/cli/verification/certificates.py"
CERTIFICATE_FILES = "imprimatur/cli/verification/documents.py"
T_MERKLE = "tests/imprimatur/verify/test_merkle.py"
T_REWRITES = "tests/service/http/test_rewrites.py"
T_FILES = "tests/imprimatur/cli/test_verification_files.py"
MEMBERS = "imprimatur/verify/members.py"
CHECKS = "imprimatur/cli/verification/checks.py"
LEDGER_CHECKS = "imprimatur/cli/verification/ledgers.py"
TRUST = "imprimatur/cli/verification/trust.py"
BUNDLES = "service/releases/bundles.py"
STORAGE = "service/platform/storage.py"
T_MEMBERS = "tests/imprimatur/verify/test_members.py"
T_SAVED = "tests/imprimatur/test_saved_generators.py"
T_FRAMES = "tests/imprimatur/test_frames.py"
T_PUBLISHED_ZIP = "tests/service/http/test_published_zip.py"
T_REMEMBERED = "tests/service/http/test_remembered.py"
LOG = "service/ledger/log.py"
RELAY = "service/upkeep/relay.py"
APP = "service/http/app.py"
T_SURFACE = "tests/service/http/test_surface.py"
T_MERKLE_LOG = "tests/service/ledger/test_merkle_log.py"

INTERLEAVED = "service/privacy/interleaved_steps.py"
WATCHING = "service/releases/watching.py"
PROMISE = "service/datasets/promise.py"
PAGING = "service/platform/paging.py"
T_INTERLEAVED = "tests/service/privacy/test_interleaved_steps.py"
T_WATCHING = "tests/service/http/test_watching.py"
T_PROMISE = "tests/service/http/test_promised_budget.py"
T_PAGES = "tests/service/http/test_pages_of_lists.py"

BUGS: tuple[Bug, ...] = (
    # -- copies of an image
    Bug(
        "the sum over copies at the price of their mean",
        ((COPIES, "self.sums.weighted_sum(weights / self.copies)", "self.sums.weighted_sum(weights)"),),
        (T_COPIES,),
    ),
    Bug(
        "copies that clip themselves are not divided",
        ((COPIES, "together.add_(of_sums, alpha=1.0 / self.copies)", "together.add_(of_sums)"),),
        (T_COPIES,),
    ),
    Bug(
        "each copy of an image clipped for itself, averaged afterwards",
        (
            (
                IMAGE_IDPGAN,
                "rows_per_unit=images.max_images_per_unit * order.copies,",
                "rows_per_unit=images.max_images_per_unit,",
            ),
        ),
        (T_IMAGE_COPIES,),
    ),
    # -- a mixture whose free samples networks are trained on
    Bug(
        "a mixture that networks only see samples of is not on the price list",
        (
            (
                GAN_PRICE,
                "    if order.mixture_first is not None:\n",
                "    if order.corrects_mixture and order.mixture_first:\n",
            ),
        ),
        (T_MIXTURE_SAMPLES,),
    ),
    Bug(
        "networks are trained on private images in the place of free samples",
        (
            (
                MIXTURE_SAMPLES,
                "begin_from_free_records(self, self.samples(on_share), self.mixture_first.free_steps, on_share)",
                "begin_from_free_records(self, self.images, self.mixture_first.free_steps, on_share)",
            ),
        ),
        (f"{T_MIXTURE_SAMPLES}::test_networks_are_trained_on_samples_and_no_private_image_is_read",),
    ),
    # -- a public start
    Bug(
        "a public start reads the private images",
        ((IMAGE_IDPGAN, "self._rows_of(free, units)", "self._rows_of(self.images, units)"),),
        (f"{T_PUBLIC_START}::test_networks_begin_from_the_public_images_and_no_private_one",),
    ),
    Bug(
        "a mask is made from private rows, at no price",
        ((TABLE_IDPGAN, "self._rows_of(free, units)", "self._rows_of(self.table, units)"),),
        (f"{T_PUBLIC_ROWS}::test_a_mask_comes_from_public_rows_alone",),
    ),
    Bug(
        "what a mask leaves out is updated, too",
        ((STEP_MAPS, "block.new_zeros(size.numel()).index_copy_", "torch.randn(size.numel()).index_copy_"),),
        (f"{T_PUBLIC_ROWS}::test_outside_the_mask_the_critic_keeps_its_first_weights",),
    ),
    Bug(
        "a method reads another dataset and does not say so",
        ((GANOBFUSCATOR, "    also_reads=public_dataset_of,\n", ""),),
        (f"{T_ALSO_READS}::test_an_order_that_names_another_dataset_says_so",),
    ),
    Bug(
        "a choice among orders reads another dataset and does not say so",
        ((CHOOSE, "    also_reads=public_dataset_of,\n", ""),),
        (f"{T_ALSO_READS}::test_orders_within_an_order_name_the_same_one",),
    ),
    Bug(
        "candidates of a choice begin from several datasets, of which one is looked at",
        ((CHOOSE_CHECK, "    _check_one_public(order)\n", ""),),
        (f"{T_ALSO_READS}::test_orders_within_an_order_name_the_same_one",),
    ),
    Bug(
        "the tries of a choice read another dataset and do not say so",
        ((CHOOSE_METHODS, "(*order.candidates, *(order.trials or ()))", "order.candidates"),),
        (f"{T_ALSO_READS}::test_orders_within_an_order_name_the_same_one",),
    ),
    Bug(
        "an undeclared dataset is taken for public",
        (
            (
                PUBLIC_DATASETS,
                "        .where(Dataset.rows_are_public.is_(True))\n",
                "",
            ),
        ),
        (
            f"{T_PUBLIC_DATASETS}::test_an_order_begins_from_declared_images_of_its_own_tenant_alone",
            f"{T_PUBLIC_DATASETS}::test_an_order_on_a_table_begins_from_rows_of_the_same_columns_alone",
        ),
    ),
    Bug(
        "an uploaded private dataset is declared public later, by the API's role",
        (
            (
                PUBLIC_FROM_UPLOAD,
                "GRANT INSERT (rows_are_public) ON",
                "GRANT INSERT (rows_are_public), UPDATE (rows_are_public) ON",
            ),
            (PUBLIC_FROM_UPLOAD, "IF NEW.rows_are_public IS DISTINCT FROM OLD.rows_are_public THEN", "IF false THEN"),
        ),
        (f"{T_PUBLIC_DATASETS}::test_what_was_said_at_the_upload_is_never_changed",),
    ),
    Bug(
        "an uploaded private dataset is declared public later, in a transaction that gives its row a new version",
        (
            (
                PUBLIC_FROM_UPLOAD,
                "GRANT INSERT (rows_are_public) ON",
                "GRANT INSERT (rows_are_public), UPDATE (rows_are_public) ON",
            ),
            (
                PUBLIC_FROM_UPLOAD,
                "IF NEW.rows_are_public IS DISTINCT FROM OLD.rows_are_public THEN",
                "IF NEW.rows_are_public IS DISTINCT FROM OLD.rows_are_public AND OLD.xmin <> pg_current_xact_id()::xid THEN",
            ),
        ),
        (f"{T_PUBLIC_DATASETS}::test_no_role_of_a_process_declares_rows_public_that_were_uploaded_as_private",),
    ),
    Bug(
        "rows that look like private ones are uploaded as public on the owner's word",
        ((UPLOAD_DECLARATION, "    if declaration.distinct_from:\n", "    if False:\n"),),
        (f"{T_PUBLIC_DATASETS}::test_rows_that_were_uploaded_as_private_are_not_uploaded_again_as_public",),
    ),
    Bug(
        "another tenant's public dataset is begun from",
        ((PUBLIC_DATASETS, "Dataset.id == public_id, Dataset.tenant_id == tenant_id", "Dataset.id == public_id"),),
        (f"{T_PUBLIC_DATASETS}::test_an_order_begins_from_declared_images_of_its_own_tenant_alone",),
    ),
    Bug(
        "public rows are read after the charge",
        ((RUN, "if finished is None and not reads_public_rows(self, rows):", "if False:"),),
        (f"{T_PUBLIC_ERASED}::test_public_rows_that_go_before_they_are_read_cost_nothing",),
    ),
    Bug(
        "a worker takes the order's word for what is public",
        (
            (
                WORKER_PUBLIC_START,
                "            return check_public_start(",
                "            return session.get(type(attempt.dataset), named) or check_public_start(",
            ),
        ),
        (f"{T_PUBLIC_DATASETS}::test_a_worker_asks_again_and_charges_nothing",),
    ),
    # -- one part of many (gswgan)
    Bug(
        "slopes are clipped image by image, and charged as if each had a draw of its own",
        ((JOINT_CLIPPING, ".square().sum().sqrt()", ".square().sum(dim=1, keepdim=True).sqrt()"),),
        (f"{T_GSWGAN}::test_two_clipped_matrices_are_never_further_apart_than_the_sensitivity",),
    ),
    Bug(
        "a discriminator's slopes count as nothing without a unit",
        ((JOINT_CLIPPING, "(2.0 * clip_norm,)", "(clip_norm,)"),),
        (f"{T_GSWGAN}::test_two_clipped_matrices_are_never_further_apart_than_the_sensitivity",),
    ),
    Bug(
        "slopes are clipped to a norm that floats cannot divide into a grid of noise",
        ((GSWGAN_ORDER, "ge=SMALLEST_CLIP_NORM,", "gt=0.0,"),),
        (f"{T_GSWGAN}::test_a_clip_norm_that_floats_cannot_divide_is_refused_and_the_smallest_gets_its_noise",),
    ),
    Bug(
        "a second discriminator is drawn and asked at a step",
        (
            (
                GSWGAN,
                "        private = clip_jointly(slopes,",
                (
                    "        drawn = draw_part(parts=self.parts, randomness=self.randomness)\n"
                    "        again = self.discriminators.slope(drawn, self._as_records(pixels, conditions))[:, : self.pixels]\n"
                    "        private = clip_jointly(slopes + share * again,"
                ),
            ),
        ),
        (f"{T_GSWGAN}::test_a_step_asks_one_discriminator_and_pays_once",),
    ),
    Bug(
        "the drawn discriminator is the one that is trained on",
        (
            (
                GSWGAN,
                "        conditions = self._conditions(self.order.batch)",
                "        self.drawn = drawn\n        conditions = self._conditions(self.order.batch)",
            ),
            (
                GSWGAN,
                "torch.split((first + torch.arange(count)) % self.parts,",
                "torch.split((self.drawn + 0 * first + torch.arange(count)) % self.parts,",
            ),
        ),
        (f"{T_GSWGAN}::test_who_is_trained_on_does_not_depend_on_what_is_drawn",),
    ),
    Bug(
        "discriminators are kept in a checkpoint",
        (
            (
                GSWGAN,
                "Checkpoint(tensors_of(self, KEPT), values)",
                'Checkpoint({**tensors_of(self, KEPT), **{f"adam.d{k}": t for k, t in enumerate(self.discriminators.tensors)}}, values)',
            ),
        ),
        (f"{T_GSWGAN}::test_discriminators_are_in_no_checkpoint",),
    ),
    Bug(
        "images of a unit lie in several parts",
        (
            (
                GSWGAN,
                "    if starts is None:\n        return list(np.array_split(order, parts))",
                "    if starts is not None:\n        return list(np.array_split(np.arange(starts[-1]), parts))\n    if starts is None:\n        return list(np.array_split(order, parts))",
            ),
        ),
        (f"{T_GSWGAN}::test_all_images_of_a_unit_are_in_one_part_and_every_unit_is_in_one",),
    ),
    Bug(
        "parts are drawn two times in three from the first half",
        (
            (
                SAMPLING,
                "    return below(parts, randomness.bits)",
                "    return min(below(parts, randomness.bits), below(parts, randomness.bits))",
            ),
        ),
        (f"{T_GSWGAN}::test_one_part_is_drawn_and_each_as_often",),
    ),
    Bug(
        "a step on a drawn part is priced as a sampled step",
        ((DRAWN_PARTS, "min(plain, max(0.0, found))", "0.0 * min(plain, max(0.0, found))"),),
        (T_DRAWN_PARTS,),
    ),
    Bug(
        "of the steps on a drawn part as many are charged as images are in a batch",
        ((GSWGAN_PRICE, "noise_multiplier, order.steps)", "noise_multiplier * order.batch**0.5, order.steps)"),),
        (f"{T_GSWGAN}::test_the_list_is_one_event_of_all_steps_whatever_the_batch",),
    ),
    # -- noise
    Bug(
        "noise divided by the number of groups",
        ((NOISE, "std_of = {tensor: std for", "std_of = {tensor: std / len(private.groups) for"),),
        (T_NOISE,),
    ),
    Bug(
        "equal share without √K over the groups",
        ((NOISE, "noise_multiplier * math.sqrt(len(sensitivities)) * c", "noise_multiplier * c"),),
        (T_NOISE,),
    ),
    Bug(
        "least noise without the sum over the groups",
        ((NOISE, "d**-0.25 * total for", "d**-0.25 * math.sqrt(c * math.sqrt(d)) for"),),
        (T_NOISE,),
    ),
    Bug(
        "flat noise from the largest clip norm alone",
        ((NOISE, "math.sqrt(sum(c * c for c in sensitivities))", "max(sensitivities)"),),
        (T_NOISE,),
    ),
    Bug(
        "noise on the mean, scaled for a mean of the square of the batch",
        (
            (
                IDPGAN,
                "noisy = release(\n            clipped.sum,",
                (
                    "from workers.mechanism import PrivateSum\n"
                    "        size = self.expected_units\n"
                    "        mean = PrivateSum(\n"
                    "            tuple(value / size for value in clipped.sum.values),\n"
                    "            clipped.sum.groups,\n"
                    "            tuple(c / size**2 for c in clipped.sum.sensitivities),\n"
                    "        )\n"
                    "        noisy = release(\n            mean,"
                ),
            ),
            (IDPGAN, "total.to(torch.float32) / self.expected_units for", "total.to(torch.float32) for"),
        ),
        (f"{T_DISTRIBUTIONS}::test_noise_of_every_group_of_the_real_step",),
    ),
    Bug(
        "noise smaller than the price list says",
        (
            (
                IDPGAN,
                "noise_multiplier=noise.gradient_noise_multiplier,",
                "noise_multiplier=0.9 * noise.gradient_noise_multiplier,",
            ),
        ),
        (f"{T_DISTRIBUTIONS}::test_noise_of_every_group_of_the_real_step",),
    ),
    Bug(
        "no noise on an empty draw",
        ((IDPGAN, "for total in noisy]", "for total in (noisy if len(drawn) else clipped.sum.values)]"),),
        (T_IDPGAN,),
    ),
    # -- normaliser and draw
    Bug(
        "normaliser is the drawn batch size",
        ((IDPGAN, "(torch.float32) / self.expected_units", "(torch.float32) / max(1, len(drawn))"),),
        (f"{T_DISTRIBUTIONS}::test_what_the_optimizer_gets_is_the_noisy_sum_over_the_expected_draw",),
    ),
    Bug(
        "the drawn batch size is logged",
        (
            (
                IDPGAN,
                "        clipped = clip_and_sum(",
                '        __import__("logging").getLogger(__name__).info("drew %d", len(drawn))\n        clipped = clip_and_sum(',
            ),
        ),
        (f"{T_DISTRIBUTIONS}::test_no_visible_quantity_depends_on_the_size_of_the_draw",),
    ),
    Bug(
        "the drawn batch size is in the checkpoint",
        (
            (
                IDPGAN,
                "        clipped = clip_and_sum(",
                "        self.drawn = len(drawn)\n        clipped = clip_and_sum(",
            ),
            (IDPGAN, '"thresholds": self.thresholds,', '"thresholds": self.thresholds, "drawn": self.drawn,'),
        ),
        (f"{T_DISTRIBUTIONS}::test_no_visible_quantity_depends_on_the_size_of_the_draw",),
    ),
    Bug(
        "shuffled batches of one size accounted as Poisson",
        (
            (
                SAMPLING,
                "    log_miss = math.log1p(-sampling_probability)\n",
                (
                    "    size = round(units * sampling_probability)\n"
                    "    return np.sort(randomness.uniforms(units).numpy().argsort()[:size])\n"
                    "    log_miss = math.log1p(-sampling_probability)\n"
                ),
            ),
        ),
        (f"{T_DISTRIBUTIONS}::test_the_draw_is_poisson",),
    ),
    Bug(
        "an empty batch is drawn again",
        (
            (
                SAMPLING,
                "    return indices[indices < units]",
                (
                    "    if not (indices < units).any():\n"
                    "        return poisson_sample(\n"
                    "            units=units, sampling_probability=sampling_probability, randomness=randomness\n"
                    "        )\n"
                    "    return indices[indices < units]"
                ),
            ),
        ),
        (f"{T_DISTRIBUTIONS}::test_empty_draws_are_as_frequent_as_they_should_be_and_are_steps",),
    ),
    Bug(
        "one draw used for two steps",
        (
            (
                IDPGAN,
                "        clipped = clip_and_sum(",
                '        if self.plan.steps_done % 2 == 0 and hasattr(self, "last"):\n            drawn = self.last\n        self.last = drawn\n        clipped = clip_and_sum(',
            ),
        ),
        (f"{T_DISTRIBUTIONS}::test_the_draw_is_poisson",),
    ),
    # -- clipping
    Bug(
        "clipping after the sum instead of before",
        (
            (
                CLIPPING,
                "return torch.where(kept, factors, 0.0) @ member.T",
                "return torch.where(kept, 1.0, 0.0).double() @ member.T",
            ),
            (
                CLIPPING,
                "    private = PrivateSum(",
                (
                    "    for group, clip_norm in zip(groups, clip_norms, strict=True):\n"
                    "        norm = math.sqrt(sum(float(totals[t].square().sum()) for t in group))\n"
                    "        for t in group:\n"
                    "            totals[t] *= min(1.0, clip_norm * max(1, units) / max(norm, 1e-300))\n"
                    "    private = PrivateSum("
                ),
            ),
        ),
        (T_CONTRACTS,),
    ),
    Bug(
        "what fills up a block on a GPU counts",
        ((REPLAYS, "padded.append(given.new_zeros(", "padded.append(given.new_ones("),),
        (f"{T_REPLAYED}::test_perceptrons",),
    ),
    Bug(
        "on a GPU all tensors are clipped as the first group",
        ((REPLAYED, "torch.tensor(group_of)] = 1.0", "torch.tensor(group_of) * 0] = 1.0"),),
        (f"{T_REPLAYED}::test_a_unit_moves_the_sum_of_a_group_by_its_clip_norm_at_most",),
    ),
    Bug(
        "gradient penalty left out of the clipped part",
        (
            (IDPGAN, "gradient_penalty=order.gradient_penalty)", "gradient_penalty=0.0)"),
            (
                IDPGAN,
                "        if not self.loss.paired:\n            # Separate",
                (
                    "        if len(drawn):\n"
                    "            batch = self._critic_batch(drawn)\n"
                    "            between = (batch.mix * batch.real + (1.0 - batch.mix) * batch.fake).requires_grad_()\n"
                    "            (slope,) = torch.autograd.grad(self.critic(between).sum(), between, create_graph=True)\n"
                    "            penalty = self.order.gradient_penalty * ((slope.norm(dim=1) - 1.0) ** 2).mean()\n"
                    "            extra = torch.autograd.grad(penalty, self.tensors, materialize_grads=True)\n"
                    "            gradients = [a + b for a, b in zip(gradients, extra, strict=True)]\n"
                    "        if not self.loss.paired:\n            # Separate"
                ),
            ),
        ),
        (f"{T_DISTRIBUTIONS}::test_what_the_optimizer_gets_is_the_noisy_sum_over_the_expected_draw",),
    ),
    Bug(
        "each row of a unit clipped for itself",
        (
            (IDPGAN, "rows_per_unit=self.bounds.rows_per_unit,", "rows_per_unit=1,"),
            (IDPGAN, "bounds(units=units,", "bounds(units=rows_per_unit * units,"),
        ),
        (f"{T_CONTRACTS}::test_every_private_sum_of_a_step",),
    ),
    Bug(
        "a non-finite gradient zeroed after the sum",
        (
            (VMAP, "return self.usable & (self.tensor_norms <= LARGEST_NORM).all(dim=1)", "return self.usable"),
            (
                VMAP,
                "total = weights[:, index] @ rows.double()",
                "total = (weights[:, index] @ rows.double()).nan_to_num(0.0, 0.0, 0.0)",
            ),
        ),
        (f"{T_CONTRACTS}::test_gradients_and_histograms_of_one_step",),
    ),
    Bug(
        "Gram norms without regard to cancellation, in float32",
        (
            (
                OUTER,
                "like=factors, dtype=torch.float64)",
                "like=factors)",
            ),
            (
                OUTER,
                "torch.maximum((squared + error).sqrt_(), largest / LARGEST_CANCELLATION)",
                "squared.sqrt().double()",
            ),
        ),
        (f"{T_CONTRACTS}::test_other_units_rounding_is_inside_the_sensitivity", T_CONTRACTS),
    ),
    Bug(
        "Gram norms of the compiled loops without regard to cancellation",
        (
            (LOOPS, "(squared > 0.0 ? squared : 0.0) + error", "squared > 0.0 ? squared : 0.0"),
            (LOOPS, "by_grams > by_products ? by_grams : by_products", "by_grams"),
        ),
        (f"{T_GRADIENTS}::test_cancelling_products_never_pass_too_much",),
    ),
    Bug(
        "products that cancel added up in float32 by the compiled loops",
        ((LOOPS, "*cancels = lengths > limits->float32_cancellation * norm;", "*cancels = 0;"),),
        (f"{T_GRADIENTS}::test_cancelling_products_never_pass_too_much",),
    ),
    Bug(
        "the compiled loops clip every tensor of a group for itself",
        ((LOOPS, "const double norm = __builtin_sqrt(squared), allowed", "const double norm = norms[group], allowed"),),
        (f"{T_KERNELS}::test_clipping_on_the_way_is_clipping_by_weights", T_CONTRACTS, T_CLIPPING),
    ),
    Bug(
        "the compiled loops let the factors of who does not count into a product",
        ((LOOPS, "            memset(right, 0, sizeof(float) * width);\n", ""),),
        (f"{T_KERNELS}::test_who_does_not_count_leaves_not_a_bit_behind",),
    ),
    Bug(
        "Gram norms of an image critic without regard to cancellation, in float32",
        (
            (CONVOLUTIONS, "like=factors, dtype=torch.float64).copy_(factors)", "like=factors).copy_(factors)"),
            (
                CONVOLUTIONS,
                "torch.maximum((squared.clamp(min=0.0) + error).sqrt(), largest / LARGEST_CANCELLATION)",
                "squared.clamp(min=0.0).sqrt().double()",
            ),
        ),
        (f"{T_CONVOLUTIONS}::test_no_record_passes_more_than_its_norm",),
    ),
    Bug(
        "Gram norms of the compiled loops count columns twice where the last ones fill no block",
        ((SUMS, "            for (long j = columns; j < COLUMNS; j++) wide[k * COLUMNS + j] = 0.0;\n", ""),),
        (f"{T_KERNELS}::test_norms_by_gram_matrices",),
    ),
    Bug(
        "the compiled loops add up stacked rows by the weight of their product's first unit",
        ((SUMS, "*= scale[unit + k / rank];", "*= scale[unit];"),),
        (f"{T_KERNELS}::test_sums_of_products", T_CONVOLUTIONS),
    ),
    Bug(
        "a whole block of images added up in one float32 product",
        (
            (
                CONVOLUTIONS,
                "    return units\n\n\ndef product_rounding",
                "    return UNITS_AT_ONCE\n\n\ndef product_rounding",
            ),
        ),
        (f"{T_CONVOLUTIONS}::test_only_as_many_units_share_a_product_as_its_bound_was_made_for",),
    ),
    Bug(
        "clip norm not shrunk for rounding",
        (
            (CLIPPING, "SHRINK = 1.0 - 1e-6", "SHRINK = 1.0"),
            (CLIPPING, "clip_norm / (1.0 + sum_rounding(bounds)) for", "clip_norm for"),
        ),
        (f"{T_CONTRACTS}::test_gradients_and_histograms_of_one_step",),
    ),
    Bug(
        "rounding of the whole sum not divided out",
        ((CLIPPING, "clip_norm / (1.0 + sum_rounding(bounds)) for", "clip_norm for"),),
        (f"{T_CONTRACTS}::test_the_bound_on_rounding_is_divided_out_of_every_clip_norm",),
    ),
    Bug(
        "products that cancel added up in float32",
        ((OUTER, "largest > FLOAT32_CANCELLATION * norms", "largest < 0.0 * norms"),),
        (f"{T_GRADIENTS}::test_terms_that_cancel_are_added_up_in_float64",),
    ),
    Bug(
        "places of rows depend on how many the other units have",
        (
            (
                PLACES,
                "    codes[~empty] = table.codes[rows[~empty]]\n",
                (
                    "    there, rows = (each.reshape(len(units), -1) for each in (~empty, rows))\n"
                    '    order = np.argsort(~there.any(axis=1), kind="stable")\n'
                    "    codes[there[order].ravel()] = table.codes[rows[order][there[order]]]\n"
                ),
            ),
        ),
        (f"{T_CONTRACTS}::test_rows_of_one_unit_do_not_move_the_others_by_a_single_bit", T_CONTRACTS),
    ),
    # -- histograms and label counts
    Bug(
        "histogram bins from the batch",
        (
            (
                THRESHOLDS,
                "    tensors = tensor_norms.shape[1]\n",
                (
                    "    tensors = tensor_norms.shape[1]\n"
                    "    edges = torch.linspace(0.0, 1.0, len(edges), dtype=torch.float64) * tensor_norms.max() if len(tensor_norms) else edges\n"
                ),
            ),
        ),
        (f"{T_CONTRACTS}::test_gradients_and_histograms_of_one_step",),
    ),
    Bug(
        "histogram charged once for M tensors",
        ((THRESHOLDS, "math.nextafter(math.sqrt(tensors), math.inf)", "1.0"),),
        (f"{T_CONTRACTS}::test_histograms_of_any_number_of_tensors",),
    ),
    Bug(
        "histogram not charged",
        (
            (
                EVENT_KINDS,
                "        precision = self.gradient_noise_multiplier**-2 + self.histogram_noise_multiplier**-2\n",
                "        precision = self.gradient_noise_multiplier**-2\n",
            ),
        ),
        (f"{T_CALIBRATION}::test_histogram_and_gradient_on_one_batch_are_one_gaussian",),
    ),
    Bug(
        "label counts not charged",
        (
            (
                GAN_PRICE,
                "    if order.condition_on is not None and not start:\n        events.append",
                "    if False:\n        events.append",
            ),
            (RUN_LABELS, "noise_multiplier = plan.take_gaussian(LABEL_COUNTS)", "noise_multiplier = 10.0"),
        ),
        (f"{T_CALIBRATION}::test_label_counts_are_charged_only_when_bought",),
    ),
    Bug(
        "what networks begin with not charged",
        (
            (GAN_PRICE, "events: list[Event] = list(start)", "events: list[Event] = []"),
            (GAN_PRICE, "order.condition_on is not None and not start:", "False:"),
        ),
        (T_WARM_START, T_IMAGE_START),
    ),
    Bug(
        "label counts of a unit with more rows than its maximum",
        ((LABELS, "        counted &= place_in_unit < max_rows_per_unit\n", ""),),
        (T_LABELS,),
    ),
    Bug(
        "label counts of a unit with many rows have the noise of one",
        ((LABELS, "1.0 if unit_starts is None else float(max_rows_per_unit)", "1.0"),),
        (T_LABELS,),
    ),
    # -- whose rows and images are
    Bug(
        "rows without a unit id are one unit together",
        ((UNIT_IDS, "if self._gives_own and absent.any():", "if False:"),),
        (T_UNIT_IDS,),
    ),
    Bug(
        "a cell that reads as missing is a unit id",
        ((INGEST_CHILD, 'if ids.missing and unit.missing == "refuse":', "if False:"),),
        (f"{T_BAD_FILES}::test_the_refusal_of_missing_units_says_how_many_and_what_to_do",),
    ),
    Bug(
        "words for a missing value are unit ids",
        ((UNIT_IDS, "absent = cells.empty_or(MISSING_IDS)", 'absent = cells.empty_or([""])'),),
        (T_UNIT_IDS,),
    ),
    Bug(
        "long unit ids go through floats",
        (
            (
                UNIT_IDS,
                "    found = _NUMBER.fullmatch(text)\n",
                "    text = repr(float(text)) if text.isdigit() else text\n    found = _NUMBER.fullmatch(text)\n",
            ),
        ),
        (T_UNIT_IDS,),
    ),
    Bug(
        "unit ids of sixteen digits go through floats",
        ((UNIT_IDS, "whole = _whole(cells)\n", "whole = cells.whole\n"),),
        (T_UNIT_IDS,),
    ),
    Bug(
        "units in a file of images are passed over where none are declared",
        ((IMAGE_UNITS, "    if not wanted and ids is not None:\n", "    if False:\n"),),
        (f"{T_READ_IMAGE_UNITS}::test_units_that_are_not_declared_are_not_passed_over",),
    ),
    Bug(
        "moments of a person with several images have the noise of one image",
        ((IMAGES, "(units.bounded(cells), float(units.most))", "(units.bounded(cells), 1.0)"),),
        (T_IMAGE_UNITS,),
    ),
    Bug(
        "moments of all images of a person, however many",
        ((IMAGES, "(units.bounded(cells), float(units.most))", "(cells, float(units.most))"),),
        (T_IMAGE_UNITS,),
    ),
    Bug(
        "two images of a person are two units of a step",
        (
            (IMAGE_IDPGAN, "units=images.units,", "units=len(images.pixels),"),
            (IMAGE_IDPGAN, "rows_per_unit=images.max_images_per_unit * order.copies,", "rows_per_unit=order.copies,"),
            (PLACES, "    if unit_starts is None:\n", "    if True:\n"),
        ),
        (f"{T_IMAGE_UNITS}::test_every_private_sum_of_a_step_when_a_person_is_nulled",),
    ),
    Bug(
        "labels of a person's images counted as those of several people",
        ((RUN_LABELS, "unit_starts=images.unit_starts,", "unit_starts=None,"),),
        (f"{T_IMAGE_UNITS}::test_every_private_sum_of_a_step_when_a_person_is_nulled",),
    ),
    Bug(
        "the number of images, which is private, is divided by",
        (
            (
                IMAGE_MIXTURE,
                "self._directions(products, means, self._count(counts))",
                "self._directions(products, means, len(pixels()))",
            ),
        ),
        (f"{T_IMAGE_UNITS}::test_nothing_public_depends_on_how_many_images_people_have",),
    ),
    Bug(
        "the number of images, which is private, decides how finely they are measured",
        ((IMAGE_MIXTURE, "scale_for(images.units,", "scale_for(len(images.pixels),"),),
        (f"{T_IMAGE_UNITS}::test_how_finely_images_are_measured_follows_from_units",),
    ),
    # -- reading rows without a charge
    Bug(
        "generator step reads real rows",
        (
            (
                IDPGAN,
                "return self._fakes(self.generator, self._drawn_conditions(self.generator_batch)), 0.0",
                (
                    "conditions = self._drawn_conditions(self.generator_batch)\n"
                    "        if conditions is not None:\n"
                    "            labels = self.table.codes[: len(conditions), self.condition_index].astype(np.int64)\n"
                    "            conditions = torch.from_numpy(np.resize(labels, len(conditions)))\n"
                    "        return self._fakes(self.generator, conditions), 0.0"
                ),
            ),
        ),
        (f"{T_IDPGAN}::test_the_generator_step_reads_no_row",),
    ),
    Bug(
        "bounds from the data",
        (
            (
                ENCODING,
                "        edges = np.asarray(self.edges, dtype=np.float64)\n        # Inner edges only",
                (
                    "        values = series.drop_nulls().to_numpy().astype(np.float64)\n"
                    "        values = values[np.isfinite(values)] if len(values) else np.zeros(1)\n"
                    "        edges = np.linspace(values.min(initial=0), values.max(initial=1), len(self.edges or ()))\n"
                    "        # Inner edges only"
                ),
            ),
        ),
        (f"{T_TABLE}::test_values_outside_the_range_are_clamped", T_TABLE),
    ),
    # -- steps and the list
    Bug(
        "one step more than priced",
        (
            (PLAN, "if self.position >= self._length:", "if self.position > self._length:"),
            (
                PLAN,
                "        return self._events[self._index]\n",
                "        return self._events[min(self._index, len(self._events) - 1)]\n",
            ),
            (
                PLAN,
                "        event = self._events[self._index]\n        self.position",
                "        event = self._events[min(self._index, len(self._events) - 1)]\n        self.position",
            ),
        ),
        (T_PLAN,),
    ),
    Bug(
        "a resumed run begins before its checkpoint",
        ((CHECKPOINTS, 'run.plan.resume(values["position"])', 'run.plan.resume(max(0, values["position"] - 1))'),),
        (f"{T_IDPGAN}::test_a_checkpoint_restores_everything_but_the_noise",),
    ),
    Bug(
        "a resumed run buys its labels again",
        (
            (
                HOOKS,
                "            method.restore(Checkpoint.from_bytes(saved))\n",
                (
                    "            method.restore(Checkpoint.from_bytes(saved))\n"
                    "            method.plan, resumed = Plan(method.plan._events), method.plan\n"
                    "            method.measure()\n"
                    "            method.plan = resumed\n"
                ),
            ),
        ),
        (f"{T_DISTRIBUTIONS}::test_what_is_released_is_the_list_and_nothing_else",),
    ),
    Bug(
        "an early stop settled at one step less than ran",
        ((ACCOUNTING, "    left = steps\n", "    left = steps - 1\n"),),
        (f"{T_CALIBRATION}::test_a_cut_list_costs_less_and_keeps_the_labels",),
    ),
    # -- jobs
    Bug(
        "a cancelled training that was killed is settled at nothing, although a checkpoint of it was visible",
        ((RUN, "self.settle(self.checkpoints.steps_done(self.release.events))", "self.settle(0)"),),
        (
            "tests/faults/test_one_holder.py::test_a_cancelled_training_that_hears_nothing_is_ended_and_settled_at_what_was_visible",
        ),
    ),
    Bug(
        "a cancel waits for the training to listen",
        ((CHILD, "self._tell(CANCEL_SIGNAL, now + CANCEL_SECONDS)", "self._tell(CANCEL_SIGNAL, math.inf)"),),
        (f"{T_CHILD}::test_a_cancel_ends_a_child_that_hears_nothing_within_five_seconds_of_polls",),
    ),
    Bug(
        "memory of a training is not limited",
        ((CHILD, " or memory_of_tree(self.child.pid) > self.limits.memory_bytes", ""),),
        (f"{T_CHILD}::test_a_child_over_a_limit_is_killed_and_nothing_of_it_lives_on",),
    ),
    Bug(
        "the limits are not given to the process of a training",
        ((RUN, "    limit_myself(Limits.from_arguments(sys.argv[3:5]), has_gpu=torch.cuda.is_available())\n", ""),),
        (f"{T_CHILD}::test_an_attempt_limits_itself_by_what_its_worker_says",),
    ),
    Bug(
        "a training over its limits is tried again",
        (
            (
                "workers/tasks.py",
                "    if ended.over_limits:\n",
                "    if ended.over_limits and ended.status == 0:\n",
            ),
        ),
        (f"{T_CHILD}::test_a_worker_gives_its_limits_to_the_process_of_a_training",),
    ),
    Bug(
        "an order over the limits is taken",
        (("service/releases/service.py", "    refuse_too_much(resolved, estimate, context.settings)", "    pass"),),
        ("tests/service/http/test_work_limits.py::test_an_order_of_a_week_is_refused_and_costs_nothing",),
    ),
    Bug(
        "an estimate forgets that a unit may have many rows",
        (
            (
                GAN_WORK,
                "_private_step(order, networks, expected * seen, seen)",
                "_private_step(order, networks, expected, seen)",
            ),
        ),
        (
            "tests/service/methods/test_estimates.py::test_an_estimate_takes_every_unit_to_have_the_most_rows_it_may_have",
        ),
    ),
    # -- prices
    Bug(
        "price rounded down",
        (
            (
                FILTERS,
                "return min(LARGEST_COST, math.ceil(share * NANO))",
                "return min(LARGEST_COST, math.floor(share * NANO))",
            ),
        ),
        (f"{T_CALIBRATION}::test_costs_round_up_and_decimals_mean_themselves",),
    ),
    Bug(
        "Rényi price rounded down",
        (
            (FILTERS, "math.ceil(Fraction(ratio) * NANO)", "math.floor(Fraction(ratio) * NANO)"),
            (FILTERS, "* (1.0 + ROUNDING_GUARD)", ""),
        ),
        (
            f"{T_CALIBRATION}::test_the_renyi_share_is_dp_accountings_divergence_rounded_up",
            f"{T_ORACLES}::test_the_renyi_share_is_never_below_the_true_divergence",
        ),
    ),
    Bug(
        "α* chosen afterwards, the cheapest order for this release",
        (
            (
                PRICING,
                "    divergence = renyi_divergence(events, budget.renyi_order)\n",
                (
                    "    from service.privacy.accounting import RENYI_ORDERS\n"
                    "    from service.privacy.renyi import renyi_capacity\n\n"
                    "    capacities = {a: renyi_capacity(budget.epsilon, budget.delta / 2.0, a) for a in RENYI_ORDERS}\n"
                    "    divergence = min(\n"
                    "        renyi_divergence(events, a) / room * budget.renyi_capacity for a, room in capacities.items() if room > 0\n"
                    "    )\n"
                ),
            ),
        ),
        (T_CHARGES,),
    ),
    Bug(
        "both accounts own the whole of δ",
        (
            (
                FILTERS,
                "    capacity = renyi_capacity(epsilon, converted, order)\n",
                "    capacity = renyi_capacity(epsilon, delta, order)\n",
            ),
        ),
        (f"{T_CALIBRATION}::test_capacity_and_epsilon_are_inverse_and_the_order_is_the_best_of_the_grid",),
    ),
    Bug(
        "amplification counted twice",
        (
            (
                MECHANISMS,
                "dp_accounting.PoissonSampledDpEvent(sampling_probability, gaussian)",
                "dp_accounting.PoissonSampledDpEvent(sampling_probability**2, gaussian)",
            ),
        ),
        (f"{T_ORACLES}::test_histogram_and_gradient_on_one_batch_by_integration_over_both",),
    ),
    Bug(
        "losses are composed without a tilt, and the error of the transform is not paid for",
        (
            (
                LOSSES,
                "    tilt = _least(implied_epsilon, start)\n",
                "    tilt = 0.03 * _least(implied_epsilon, start)\n",
            ),
            (LOSSES, "    terms = (np.maximum(sums, 0.0) + paid) * untilted\n", "    terms = sums * untilted\n"),
        ),
        (f"{T_LOSSES}::test_no_length_of_a_long_list_is_claimed_to_cost_less_than_it_does",),
    ),
    Bug(
        "the loss of a step is rounded down",
        ((LOSS_CELLS, "    spread[:-1] += masses - upper\n    spread[1:] += upper\n", "    spread[:-1] += masses\n"),),
        (f"{T_LOSSES}::test_steps_of_several_kinds_and_a_gaussian_release",),
    ),
    Bug(
        "a negative divergence becomes a cost",
        ((FILTERS, "if not math.isfinite(ratio) or ratio < 0.0:", "if not math.isfinite(ratio):"),),
        (f"{T_ORACLES}::test_a_divergence_that_is_none_never_becomes_a_cost",),
    ),
    # -- events that are no Gaussians
    Bug(
        "the losses of a pure event with their probabilities exchanged",
        (
            (
                LOSS_CELLS,
                "grid.add_point(masses, self.epsilon, 1.0 / (1.0 + math.exp(-self.epsilon)))",
                "grid.add_point(masses, -self.epsilon, 1.0 / (1.0 + math.exp(-self.epsilon)))",
            ),
            (
                LOSS_CELLS,
                "grid.add_point(masses, -self.epsilon, math.exp(-self.epsilon) / (1.0 + math.exp(-self.epsilon)))",
                "grid.add_point(masses, self.epsilon, math.exp(-self.epsilon) / (1.0 + math.exp(-self.epsilon)))",
            ),
        ),
        (f"{T_EVENT_ORACLES}::test_pure_events_cost_what_randomised_responses_do",),
    ),
    Bug(
        "the divergence of a pure event by the bound of an exponential mechanism",
        (
            (
                MECHANISMS,
                "        return math.log1p(excess) / less\n\n    def loss(self) -> LossOfOne:\n        return TwoPointLoss",
                "        return order * epsilon * epsilon / 8.0\n\n    def loss(self) -> LossOfOne:\n        return TwoPointLoss",
            ),
        ),
        (f"{T_EVENT_ORACLES}::test_the_renyi_divergence_of_a_pure_event_is_that_of_randomised_response",),
    ),
    Bug(
        "losses of pure events go to the lower end of their cells",
        (
            (
                LOSS_CELLS,
                "        masses[cell - self.first] += mass - upper\n        masses[cell - self.first + 1] += upper\n",
                "        masses[cell - self.first] += mass\n",
            ),
        ),
        (f"{T_EVENT_ORACLES}::test_pure_events_cost_what_randomised_responses_do",),
    ),
    Bug(
        "Laplace noise without the outputs at which it is as unlike as it can be",
        ((LOSS_CELLS, "        grid.add_point(masses, self.epsilon, 0.5)\n", ""),),
        (f"{T_EVENT_ORACLES}::test_one_laplace_event_has_its_closed_form",),
    ),
    Bug(
        "an exponential mechanism at half of its bounded range",
        (
            (
                MECHANISMS,
                "order * self.epsilon * self.epsilon / 8.0)",
                "order * (self.epsilon / 2.0) ** 2 / 8.0)",
            ),
        ),
        (f"{T_EVENT_ORACLES}::test_no_exponential_mechanism_costs_more_than_its_event",),
    ),
    Bug(
        "an exponential mechanism without the bound of a pure one",
        (
            (
                MECHANISMS,
                "min(self._divergence(order), order * self.epsilon * self.epsilon / 8.0)",
                "max(0.0, order * self.epsilon * self.epsilon / 8.0)",
            ),
        ),
        (f"{T_EVENT_ORACLES}::test_an_exponential_event_costs_the_smaller_of_both_bounds",),
    ),
    Bug(
        "a release in parts priced by the mean of its parts",
        (
            (
                MECHANISMS,
                "[max(at_order) for at_order in zip(*of_parts, strict=True)]",
                "[sum(at_order) / len(at_order) for at_order in zip(*of_parts, strict=True)]",
            ),
        ),
        (f"{T_EVENT_ORACLES}::test_a_release_in_parts_costs_its_dearest_part",),
    ),
    Bug(
        "a unit is in the part of the same number of every split",
        (
            (
                MECHANISMS,
                "for chosen in product(*known)]",
                "for chosen in (zip(*([w[i % len(w)] for i in range(max(map(len, known)))] for w in known)) if known else [()])]",
            ),
        ),
        (f"{T_EVENT_ORACLES}::test_a_unit_may_be_in_any_part_of_each_split",),
    ),
    Bug(
        "the (ε, δ) of a release in parts is that of its first part",
        (
            (
                ACCOUNTING,
                "return losses[0] if len(losses) == 1 else LargestLoss(losses)",
                "return losses[0] if losses else LargestLoss(losses)",
            ),
        ),
        (f"{T_EVENT_ORACLES}::test_a_release_in_parts_costs_its_dearest_part",),
    ),
    Bug(
        "a split that follows earlier outputs priced like a declared one",
        ((MECHANISMS, "if self.follows_outputs or math.comb(", "if math.comb("),),
        (f"{T_EVENT_ORACLES}::test_where_outputs_decide_between_parts_no_combination_is_enough",),
    ),
    Bug(
        "the best of several runs paid for as one",
        (
            (
                MECHANISMS,
                "order: divergence + constant + math.log(self.mean) / (order - 1.0)",
                "order: divergence + 0.0 * (constant + math.log(self.mean))",
            ),
        ),
        (f"{T_EVENT_ORACLES}::test_a_real_selection_costs_no_more",),
    ),
    Bug(
        "releases of whole numbers in parts are not counted",
        (
            (
                EVENT_KINDS,
                "        return self.count * max(sum(event.whole_number_releases for event in part) for part in self.parts)\n",
                "        return 0\n",
            ),
        ),
        (f"{T_EVENTS}::test_releases_of_whole_numbers_are_counted_where_noise_is_gaussian",),
    ),
    Bug(
        "a plan hands out an event of another kind",
        ((PLAN, "(event.kind, event.purpose) != (kind.kind, purpose)", "event.purpose != purpose"),),
        (f"{T_PLAN}::test_another_kind_or_purpose_is_refused_and_nothing_is_spent",),
    ),
    # -- randomness
    Bug(
        "seed fixed in the stream",
        (
            (
                RANDOM,
                "        self.is_private = True\n        self._start(os.urandom(KEY_BYTES))",
                "        self.is_private = True\n        self._start(bytes(KEY_BYTES))",
            ),
        ),
        (T_RANDOM,),
    ),
    Bug(
        "seed fixed in the worker, and published",
        (
            (
                RUN,
                "rows, SecureRandom(), self.hooks",
                "rows, SecureRandom.from_test_seed(0), self.hooks",
            ),
            (RUN, "        if not made.is_private:\n", "        if False:\n"),
        ),
        (
            f"{T_DISTRIBUTIONS}::test_a_generator_trained_on_test_noise_is_not_published",
            f"{T_DISTRIBUTIONS}::test_a_release_trains_with_a_fresh_stream_of_the_operating_system",
        ),
    ),
    Bug(
        "a fork goes on with its parent's stream",
        (
            (
                RANDOM,
                "        if self.is_private and os.getpid() != self._process:\n            self._start(os.urandom(KEY_BYTES))\n",
                "",
            ),
        ),
        (T_RANDOM,),
    ),
    # -- measured marginals
    Bug(
        "every table gets noise as if it were the only one",
        (
            (NOISE, "noise_multiplier * math.sqrt(total / weight) for", "noise_multiplier * sensitivities[0] for"),
            (NOISE, "    if not spent <= noise_multiplier**-2 * (1.0 + 1e-9):\n", "    if False:\n"),
        ),
        (T_TABLES, T_MARGINALS),
    ),
    Bug(
        "noise beyond 64 bits is added, and vanishes",
        ((NOISE, "    if not noise_std <= LARGEST_NOISE_STD:\n", "    if False:\n"),),
        (T_TABLES,),
    ),
    Bug(
        "noise has an end: what falls beyond the table is drawn again",
        (
            (WHOLE, "    verdicts[~inside] = UNDECIDED\n", "    verdicts[~inside] = DRAW_AGAIN\n"),
            (WHOLE_LOOPS, "? UNDECIDED : DRAW_AGAIN;\n    *value", "? DRAW_AGAIN : DRAW_AGAIN;\n    *value"),
        ),
        (T_WHOLE,),
    ),
    Bug(
        "large noise on counts is a float, whose lattice tells odd from even",
        (
            (
                NOISE,
                "value + randomness.discrete_gaussian(*value.shape, variance=variance).to(value.device)",
                "value + (noise_std * randomness.normals(*value.shape)).long()  # type: ignore[attr-defined]",
            ),
        ),
        (T_TABLES,),
    ),
    Bug(
        "cells that no row is in get no noise",
        (
            (
                NOISE,
                "value + randomness.discrete_gaussian(*value.shape, variance=variance).to(value.device)",
                "value + (value != 0) * randomness.discrete_gaussian(*value.shape, variance=variance).to(value.device)",
            ),
        ),
        (f"{T_RELEASE_ATTACKS}::test_nothing_private_is_beyond_its_price",),
    ),
    Bug(
        "noise on counts ends at eight standard deviations",
        (
            (
                NOISE,
                "discrete_gaussian(*value.shape, variance=variance).to(",
                "discrete_gaussian(*value.shape, variance=variance).clamp(-(k := int(8 * variance**0.5)), k).to(",
            ),
        ),
        (f"{T_AUDIT}::test_outputs_alone",),
    ),
    Bug(
        "noise beyond a few hundred counts is even",
        (
            (WHOLE, "offsets & (table.block - 1)\n", "offsets & (table.block - 2)\n"),
            (WHOLE_LOOPS, "(((uint64_t)1 << t->block_bits) - 1)", "(((uint64_t)1 << t->block_bits) - 2)"),
        ),
        (f"{T_AUDIT}::test_noise_as_large_as_it_may_be_tells_nothing",),
    ),
    Bug(
        "a sum keeps its place between two points of the grid",
        ((NOISE, "torch.split(nearest.add_(drawn), [", "torch.split(nearest.add_(drawn).add_(places), ["),),
        (f"{T_AUDIT}::test_outputs_alone",),
    ),
    Bug(
        "whole noise has the variance of the Gaussian that pays for it",
        ((NOISE, "math.sqrt(noise_std**2 + LEAST_ROUNDING_VARIANCE + ", "math.sqrt(noise_std**2 + 0.0 * "),),
        (T_DISCRETE,),
    ),
    Bug(
        "an id with a no-break space is another person",
        (("service/intake/unit_ids.py", "            cells = _as_seen(cells)\n", ""),),
        ("tests/service/intake/test_unit_ids.py",),
    ),
    Bug(
        "an event of many sums is rounded as if it were one",
        (
            (
                RELEASES,
                "                times=times,\n            )\n            return noisy.numpy()",
                "            )\n            return noisy.numpy()",
            ),
        ),
        (T_MARGINALS,),
    ),
    Bug(
        "a new declaration is taken with rows that agree in what is not declared missing",
        (
            (
                "service/datasets/redeclaration.py",
                "is_new and table.fingerprints[-1] not in known:",
                "is_new and known.isdisjoint(table.fingerprints):",
            ),
        ),
        (f"{T_SAME_ROWS}::test_a_decoy_does_not_become_the_rows_of_another_dataset",),
    ),
    Bug(
        "a file sent again in another order hides columns behind others",
        ((DATASET_ROWS, "place_of[one.place],\n", "one.place,\n"),),
        (f"{T_SAME_ROWS}::test_the_order_of_columns_in_a_file_sent_again_does_not_hide_any",),
    ),
    Bug(
        "what discrete noise costs beyond the Gaussian is not paid",
        (
            (CALIBRATION, "math.nextafter(epsilon - NOISE_RESERVE, 0.0)", "math.nextafter(epsilon, 0.0)"),
            (CALIBRATION, "return events, of_gaussians + NOISE_RESERVE", "return events, of_gaussians"),
        ),
        (T_DISCRETE,),
    ),
    Bug(
        "sums are rounded to the grid before their noise is drawn",
        ((NOISE, "fractions=places.sub_(nearest)", "fractions=places.sub_(places)"),),
        (T_NOISE,),
    ),
    Bug(
        "what float64 cannot decide is kept",
        (
            (WHOLE, "torch.full_like(bucket, UNDECIDED)", "torch.full_like(bucket, KEEP)"),
            (WHOLE_LOOPS, "? DRAW_AGAIN : UNDECIDED;", "? DRAW_AGAIN : KEEP;"),
        ),
        (T_WHOLE,),
    ),
    Bug(
        "strata of the label overlap: rows of one label are counted in all of them",
        (
            (
                TABLES,
                "            places = self._slice_of_row * layout.widths[i] + self._cells[i]\n",
                (
                    "            alone = np.bincount(self._cells[i], minlength=layout.widths[i])\n"
                    "            return np.tile(alone, layout.slices)\n"
                ),
            ),
        ),
        (T_TABLES,),
    ),
    Bug(
        "tables of a unit with many rows have the noise of one",
        ((TABLES, "(float(max_rows_per_unit if unit_starts is not None else 1),)", "(1.0,)"),),
        (T_TABLES,),
    ),
    Bug(
        "tables count all rows of a unit",
        (
            (
                TABLES,
                "(block < widths).all(axis=1) & _within_bound(start, len(block), unit_starts, max_rows_per_unit)",
                "(block < widths).all(axis=1)",
            ),
        ),
        (T_TABLES,),
    ),
    Bug(
        "counts of intervals count all rows of a unit",
        (
            (
                TABLES,
                "        within = _within_bound(start, len(block), unit_starts, max_rows_per_unit)\n        which",
                "        within = np.ones(len(block), dtype=np.bool_)\n        which",
            ),
        ),
        (T_TABLES,),
    ),
    Bug(
        "intervals of a unit with many rows have the noise of one",
        (
            (
                TABLES,
                "    bound = float(max_rows_per_unit if unit_starts is not None else 1)\n    return PrivateSum((torch.from_numpy(total),)",
                "    bound = 1.0\n    return PrivateSum((torch.from_numpy(total),)",
            ),
        ),
        (T_TABLES,),
    ),
    Bug(
        "counts of digits are a level that a tree does not pay for",
        ((RELEASES, "        times = levels + len(asks_for_digits)\n", "        times = levels\n"),),
        (T_MARGINALS,),
    ),
    Bug(
        "every level of a tree has the noise of the whole of it",
        ((RELEASES, "take_gaussian(VALUE_TREES) * math.sqrt(times)", "take_gaussian(VALUE_TREES)"),),
        (T_MARGINALS,),
    ),
    Bug(
        "nodes of a tree are cut by counts without noise",
        ((RELEASES, "            return noisy.numpy()\n", "            return private.values[0].numpy()\n"),),
        (T_MARGINALS,),
    ),
    Bug(
        "trees are not on the price list",
        (
            (
                MARGINALS_PRICE,
                "    trees = {VALUE_TREES: order.tree_precision_share} if order.tree_precision_share else {}\n",
                "    trees: dict[str, float] = {}\n",
            ),
        ),
        (T_CHOICES, T_MARGINALS),
    ),
    Bug(
        "scores of all pairs have the sensitivity of one",
        ((TABLES, "(rows * math.sqrt(len(pairs)),)", "(float(rows),)"),),
        (T_TABLES,),
    ),
    Bug(
        "choosing pairs is not on the price list",
        (
            (
                MARGINALS_PRICE,
                "    return tuple(GaussianEvent(purpose, noise_multiplier / math.sqrt(share)) for purpose, share in shares.items())\n",
                "    return (GaussianEvent(MARGINALS, noise_multiplier),)\n",
            ),
        ),
        (T_CHOICES, T_MARGINALS),
    ),
    Bug(
        "asking whether few pairs say nearly all is not on the price list",
        ((MARGINALS_PRICE, "        shares[PAIR_SCORES] = order.few_precision_share\n", "        pass\n"),),
        (T_CHOICES, T_MARGINALS),
    ),
    Bug(
        "pairs are chosen by scores without noise",
        (
            (
                RELEASES,
                "        return noisy.numpy().astype(np.float64), drawn_std(",
                "        return private.values[0].numpy().astype(np.float64), drawn_std(",
            ),
        ),
        (T_MARGINALS,),
    ),
    Bug(
        "single columns are looked at twice for the price of once",
        ((RELEASES, "ONE_WAY_TABLES) * math.sqrt(len(layouts))", "ONE_WAY_TABLES)"),),
        (T_MARGINALS,),
    ),
    Bug(
        "tables are measured by the price list of another order",
        ((METHOD, "        self.plan.expect(marginals_events(self.order, noise_multiplier=1.0))\n", ""),),
        (T_MARGINALS,),
    ),
    Bug(
        "rare cells are found by counts without noise",
        (
            (
                FIRST_LOOK,
                "    return replace(looked, layout=with_groups(order, looked, units",
                (
                    "    from workers.mechanism.marginals import count_tables\n"
                    "    exact = count_tables(releases.table.codes, looked.layout, [m.columns for m in looked.tables]).values\n"
                    "    exact = tuple(replace(m, counts=e.numpy()) for m, e in zip(looked.tables, exact))\n"
                    "    return replace(looked, layout=with_groups(order, replace(looked, tables=exact), units"
                ),
            ),
        ),
        (T_MARGINALS,),
    ),
    Bug(
        "one-way tables before all pairs are not on the price list",
        (
            (
                MARGINALS_PRICE,
                "    if not order.looks_at_single_columns_first:\n",
                "    if order.pairs == 'all' or not order.looks_at_single_columns_first:\n",
            ),
        ),
        (T_CHOICES, T_MARGINALS),
    ),
    Bug(
        "one-way tables of all rows beside those of strata are not on the price list",
        (
            (
                MARGINALS_PRICE,
                "    if not order.looks_at_single_columns_first:\n",
                "    if order.pairs == 'none' or not order.looks_at_single_columns_first:\n",
            ),
        ),
        (T_CHOICES, T_MARGINALS),
    ),
    Bug(
        "a crash after the measurement measures again",
        (
            (
                HOOKS,
                "            self.checkpoints.put(method.checkpoint().to_bytes())\n\n    def keep",
                "            pass\n\n    def keep",
            ),
        ),
        (f"{T_RESUME}::test_killed_right_after_a_purchase_nothing_is_bought_again",),
    ),
    # -- autoencoders of clusters and classes
    Bug(
        "clusters by centres without noise",
        (
            (
                BLOCK_RUN,
                "counts, sums = noisy.released",
                "counts, sums = (v.double().numpy() for v in moments().values)",
            ),
        ),
        (T_BLOCKS,),
    ),
    Bug(
        "features that are no numbers become whole numbers longer than declared",
        ((BLOCK_CLUSTERS, ".nan_to_num(0.0)\n", "\n"),),
        (f"{T_BLOCK_ROWS}::test_features_of_the_narrowest_kernel_are_no_longer_than_declared",),
    ),
    Bug(
        "a sum over rows is made before its event is taken",
        (
            (
                WHOLE_SUMS,
                "    noise_multiplier = plan.take_gaussian(purpose)\n    private = sums()\n",
                "    private = sums()\n    noise_multiplier = plan.take_gaussian(purpose)\n",
            ),
        ),
        (T_EVENT_FIRST,),
    ),
    Bug(
        "codes of all rows are made before the first event of EM is taken",
        (
            (
                "workers/methods/dpsyn/run.py",
                "        shares = shares_of_precision(order",
                "        codes()\n        shares = shares_of_precision(order",
            ),
        ),
        (T_EVENT_FIRST,),
    ),
    Bug(
        "the cluster of every record is found before the first step has its event",
        (
            (
                BLOCK_TRAINING,
                "        for _ in hooks.steps_of(self):\n            self.step()\n        return self.released",
                "        self._members  # noqa: B018\n        for _ in hooks.steps_of(self):\n            self.step()\n        return self.released",
            ),
        ),
        (T_EVENT_FIRST,),
    ),
    Bug(
        "true sizes of clusters as normalisers",
        (
            (
                BLOCK_TRAINING,
                "np.maximum(self.block_counts(), SMALLEST_COUNT)",
                "np.maximum(np.bincount(self.members(), minlength=self.blocks), SMALLEST_COUNT)",
            ),
        ),
        (T_BLOCKS,),
    ),
    Bug(
        "rows of one unit are clipped each",
        ((BLOCK_TRAINING, "blocks, normals, given.present, places)", "blocks, normals, given.present, 1)"),),
        (T_BLOCKS,),
    ),
    Bug(
        "responsibilities that sum to more than one",
        (
            (IMAGES, "np.floor(WEIGHT * weights / weights.sum(axis=1, keepdims=True))", "np.floor(WEIGHT * weights)"),
            (IMAGES, " & (shares.sum(axis=1) <= WEIGHT)", ""),
        ),
        (T_PRIVATE_EM,),
    ),
    Bug(
        "second moments of codes without their share of the sensitivity",
        ((IMAGES, "(bound, bound * radius, bound * radius**2)", "(bound, bound * radius, bound * radius)"),),
        (T_PRIVATE_EM,),
    ),
    Bug(
        "rounds of k-means that are not on the price list",
        (
            (
                BLOCK_PRICE,
                "(GaussianEvent(CLUSTER_MEANS, means),) * order.rounds",
                "(GaussianEvent(CLUSTER_MEANS, means),)",
            ),
        ),
        (T_BLOCK_PRICE,),
    ),
    # -- images
    Bug(
        "shared moments have the noise of a sum of vectors",
        ((IMAGES, "((0,),), (most * radius**2,))", "((0,),), (most * radius,))"),),
        (T_IMAGES,),
    ),
    Bug(
        "the histogram of pixels has noise as if an image were one pixel",
        ((IMAGES, "(most * pixels.shape[1],))", "(most,))"),),
        (T_IMAGES,),
    ),
    Bug(
        "a round of sorting that is not on the price list",
        ((MIXTURE_PRICE, "*[(CELL_MEANS, order.sorting_precision_share)] * rounds,\n", ""),),
        (T_MIXTURE_PRICE,),
    ),
    Bug(
        "exact counts of slants decide whether images are deskewed",
        (
            (
                IMAGE_MIXTURE,
                "(counts,) = self._release(LEANINGS, partial(self._leanings, stood), (1.0,))",
                "self._release(LEANINGS, partial(self._leanings, stood), (1.0,))\n            counts = self._leanings(stood).values[0].double().numpy()",
            ),
        ),
        (T_IMAGE_MIXTURE,),
    ),
    Bug(
        "slants that are not on the price list",
        (
            (
                MIXTURE_PRICE,
                "        *([(LEANINGS, order.leanings_precision_share)] if order.upright is None else []),\n",
                "",
            ),
        ),
        (T_MIXTURE_PRICE,),
    ),
    Bug(
        "a recorded checkpoint that is gone begins anew, although previews of it were shown",
        (
            (
                KEPT,
                "return None if key is None else self._attempt.patiently(lambda: self._storage.get_content(key))",
                (
                    "try:\n            return None if key is None else self._attempt.patiently(lambda: self._storage.get_content(key))"
                    "\n        except Exception:\n            return None"
                ),
            ),
        ),
        (T_PREVIEWS,),
    ),
    Bug(
        "rows that are erased while a finished release is measured take it with them at the next attempt",
        (
            (
                RUN,
                'if self.dataset.state == "erased" and (finished is None or self.release.order.accept is not None):',
                'if self.dataset.state == "erased":',
            ),
        ),
        (f"{T_NOT_MADE}::test_an_attempt_after_a_crash_publishes_what_was_finished",),
    ),
    Bug(
        "a finished generator lies in the store before its steps are recorded",
        (("workers/finished.py", '"position": sum(event.count for event in events),', '"position": 0,'),),
        ("tests/workers/test_recorded_steps.py::test_a_finished_generator_is_all_steps",),
    ),
    # -- what is said of a promise
    Bug(
        "δ is a tenth of 1/n by default",
        (
            (
                STATEMENTS,
                "return min(largest_delta(units), max(SMALLEST_DEFAULT_DELTA, min(LARGEST_DEFAULT_DELTA, 1.0 / units**2)))",
                "return largest_delta(units)",
            ),
        ),
        (T_STATEMENTS,),
    ),
    Bug(
        "a δ above 1/(10n) is taken",
        ((DATASETS, "choose_delta(declaration.budget.delta, table.units)", "declaration.budget.delta or 1e-9"),),
        (f"{T_DATASETS}::test_a_bad_field_is_refused_clearly_and_nothing_is_kept",),
    ),
    Bug(
        "a δ above the default goes without a warning",
        ((STATEMENTS, "if delta > default_delta(units):", "if delta > largest_delta(units):"),),
        (T_STATEMENTS,),
    ),
    Bug(
        "a budget of any ε is taken",
        ((DATASETS, "    check_epsilon(declaration.budget.epsilon, settings.max_epsilon)\n", ""),),
        (f"{T_DATASETS}::test_the_operator_says_how_large_an_epsilon_may_be",),
    ),
    Bug(
        "an ε above ten goes without a warning",
        ((STATEMENTS, "LARGE_EPSILON = 10.0", "LARGE_EPSILON = 1_000.0"),),
        (T_STATEMENTS,),
    ),
    Bug(
        "a certificate warns of the release's own ε and δ alone",
        (
            (
                CERTIFICATE,
                "        epsilon=budget.epsilon,\n        delta=budget.delta,\n        units=protected_units(",
                '        epsilon=price["epsilon"],\n        delta=price["delta"],\n        units=protected_units(',
            ),
        ),
        (T_CERTIFICATE_WARNINGS,),
    ),
    Bug(
        "a draft does not say that it read from rows which fields are required",
        ((DRAFT, 'and so were `required` and"\n    " `missingValues`: publishing', "so publishing"),),
        (f"{T_DRAFT}::test_it_says_that_required_and_the_missing_values_were_read_from_rows_too",),
    ),
    Bug(
        "a first line that is a row becomes names",
        ((FIRST_LINE, "    if is_a_row(names, columns):\n", "    if not names:\n"),),
        (
            f"{T_FINDINGS}::test_a_row_in_the_first_line_stops_the_draft_and_is_not_quoted",
            f"{T_WRONG}::test_a_row_in_the_first_line_is_refused_and_not_quoted",
        ),
    ),
    Bug(
        "a draft lists values that occur once",
        ((DECIDE, "for text, count in known.items() if count > 1)", "for text, count in known.items() if count > 0)"),),
        (f"{T_FINDINGS}::test_a_value_that_occurs_once_is_not_listed_and_is_shown_to_the_owner_alone",),
    ),
    Bug(
        "a draft lists identifiers",
        ((DECIDE, "looks.SOME * count >= seen.cells", "looks.SOME * count < 0"),),
        (f"{T_FINDINGS}::test_what_points_to_a_person_is_left_out_and_none_of_it_is_in_the_draft",),
    ),
    Bug(
        "a draft lists the names of a few people",
        (
            (
                DECIDE,
                "    elif says_person(seen.name) and not _is_yes_or_no(seen):\n",
                "    elif says_person(seen.name) and _different(seen) > 10:\n",
            ),
        ),
        (f"{T_FINDINGS}::test_what_points_to_a_person_is_left_out_and_none_of_it_is_in_the_draft",),
    ),
    Bug(
        "a draft is written over the private file",
        (("service/cli/schemas.py", "    check_output(output, file)\n", ""),),
        ("tests/service/cli/test_schema_edit.py::test_the_private_file_is_never_the_output",),
    ),
    Bug(
        "the service takes a draft as it is",
        ((DRAFTS, "    if marked or is_marked(document):\n", "    if False:\n"),),
        (f"{T_WRONG}::test_a_draft_is_refused_until_it_is_accepted",),
    ),
    Bug(
        "erasing frees rows that were charged",
        ((FREED, "    IF NOT public.dataset_was_ordered(dataset) THEN\n", "    IF true THEN\n"),),
        (f"{T_WRONG}::test_rows_with_an_open_order_or_a_charge_keep_their_budget_after_erasure",),
    ),
    # -- the log that outsiders check
    Bug(
        "Merkle log: leaves hashed without their prefix",
        ((MERKLE, 'hashlib.sha256(b"\\x00" + leaf)', "hashlib.sha256(leaf)"),),
        (T_MERKLE,),
    ),
    Bug(
        "Merkle log: a consistency proof need not lead to the earlier root",
        (
            (
                MERKLE,
                "last == 0 and earlier == first_root and later == second_root",
                "last == 0 and later == second_root",
            ),
        ),
        (T_MERKLE,),
    ),
    Bug(
        "Merkle log: the proof of another leaf passes",
        ((VERIFICATION, "    checks.expect(in_log, ", "    checks.expect(True, "),),
        (f"{T_REWRITES}::test_what_the_log_does_not_say_is_refused_although_it_is_signed",),
    ),
    Bug(
        "Merkle log: the heads of two certificates are not held against each other",
        ((VERIFICATION, "        check_log(checks, earlier, later, target)\n", "        pass\n"),),
        (f"{T_REWRITES}::test_a_log_rewritten_as_a_whole_is_found",),
    ),
    Bug(
        "Merkle log: a second history of a dataset at its end passes",
        ((VERIFICATION, "            check_dataset(checks, earlier, later, target)\n", "            pass\n"),),
        (f"{T_REWRITES}::test_a_second_history_at_the_end_of_the_log_is_found",),
    ),
    Bug(
        "Merkle log: a certificate's price is not held against the entry it names",
        ((VERIFICATION, "        computed == certificate.entry_hash,\n", "        True,\n"),),
        (f"{T_REWRITES}::test_what_the_log_does_not_say_is_refused_although_it_is_signed",),
    ),
    Bug(
        "Merkle log: a key is believed that says it is endorsed",
        (
            (
                SIGNATURES,
                "if verify_bytes(endorsed_bytes(key.public_bytes), key.endorsement, endorser):",
                "if endorser:",
            ),
        ),
        (f"{T_REWRITES}::test_only_a_known_key_will_do",),
    ),
    Bug(
        "Merkle log: a certificate is believed by the key that it brings along",
        (
            (
                TRUST,
                "{key.id: key.public_bytes for key in served}, f",
                "{key.id: key.public_bytes for key in listed}, f",
            ),
        ),
        (f"{T_REWRITES}::test_only_a_known_key_will_do",),
    ),
    Bug(
        "Merkle log: a certificate without a head passes in any format",
        ((VERIFICATION, "    if type(version) is not int or version != 1:\n", "    if False:\n"),),
        (f"{T_FILES}::test_only_format_1_may_lack_a_head",),
    ),
    Bug(
        "Merkle log: a key of the file signs a certificate without a head",
        ((VERIFICATION, "            early,\n", "            True,\n"),),
        (f"{T_FILES}::test_only_the_key_from_before_the_log_signs_without_a_head",),
    ),
    Bug(
        "verify: a certificate that gives a member twice is read by its last one",
        (
            (CERTIFICATE_FILES, 'read_json(_short_text(path)), ""', 'json.loads(_short_text(path)), ""'),
            (CERTIFICATE_FILES, "import uuid\n", "import json\nimport uuid\n"),
        ),
        (f"{T_FILES}::test_a_member_that_is_given_twice_is_refused",),
    ),
    Bug(
        "verify: an entry that voids a reservation passes as payment",
        ((VERIFICATION, 'checks.expect(kind == "post", ', "checks.expect(True, "),),
        (f"{T_FILES}::test_only_a_charge_pays",),
    ),
    Bug(
        "verify: two certificates of one release may say different things",
        ((VERIFICATION, "        _check_same_payment(checks, one, other)\n", "        pass\n"),),
        (f"{T_FILES}::test_one_release_and_one_entry_have_one_certificate",),
    ),
    Bug(
        "a key that is replaced while a head is signed ends the attempt",
        ((LOG, "    except IntegrityError:  #", "    except ZeroDivisionError:  #"),),
        (f"{T_REWRITES}::test_a_key_that_is_replaced_while_a_head_is_signed_costs_a_moment",),
    ),
    Bug(
        "an unexpected error ends the thread that signs heads",
        (
            (
                RELAY,
                "        except Exception as error:  # noqa: BLE001 - without",
                "        except ImprimaturError as error:  # - without",
            ),
        ),
        (f"{T_MERKLE_LOG}::test_nothing_ends_the_thread_that_signs_heads",),
    ),
    Bug(
        "verify: a proof that is none ends the check",
        ((CERTIFICATE_FILES, "[p for p in proofs if isinstance(p, dict)]", "list(proofs)"),),
        (f"{T_FILES}::test_proofs_that_are_none_prove_nothing",),
    ),
    # -- the published ZIP, and what verify is held against
    Bug(
        "published ZIP: the hash of a member is not compared",
        ((MEMBERS, "if member.size != size or computed.hexdigest() != digest:", "if member.size != size:"),),
        (f"{T_MEMBERS}::test_a_changed_member_is_found",),
    ),
    Bug(
        "published ZIP: a member that is not signed passes",
        ((MEMBERS, "    if more:\n", "    if False:\n"),),
        (f"{T_MEMBERS}::test_an_extra_and_a_missing_member_are_found", f"{T_SAVED}::test_no_other_zip_is_saved"),
    ),
    Bug(
        "published ZIP: a member may be listed twice",
        ((MEMBERS, "    if doubled:\n", "    if False:\n"),),
        (f"{T_MEMBERS}::test_a_member_that_is_listed_twice_is_found",),
    ),
    Bug(
        "published ZIP: bytes that belong to no member pass",
        (
            (
                MEMBERS,
                "    if position != len(directory) or start + len(directory) + _END.size != size:\n",
                "    if False:\n",
            ),
            (MEMBERS, " or at != start or ", " or "),
            (MEMBERS, "    file.seek(start)\n    local = ", "    start = at\n    file.seek(start)\n    local = "),
        ),
        (f"{T_MEMBERS}::test_a_member_that_the_directory_does_not_list_is_found",),
    ),
    Bug(
        "published ZIP: the service reads one that the release's certificate does not sign",
        ((BUNDLES, "check_bundle(file, certificate)", "check_bundle(file)"),),
        (f"{T_PUBLISHED_ZIP}::test_a_zip_that_the_database_names_instead_is_not_used",),
    ),
    Bug(
        "published ZIP: a certificate in the database counts without its signature",
        ((BUNDLES, "        self.require_signed(release_id, certificate)\n", ""),),
        (f"{T_PUBLISHED_ZIP}::test_a_certificate_that_was_not_signed_here_is_not_used",),
    ),
    Bug(
        "published ZIP: an object is not held against the hash that is its name",
        (
            (
                STORAGE,
                '    if not hmac.compare_digest(key.rpartition("/")[2], digest.hexdigest()):\n',
                "    if False:\n",
            ),
        ),
        (f"{T_PUBLISHED_ZIP}::test_an_object_that_is_swapped_after_it_was_checked_is_not_used",),
    ),
    Bug(
        "published ZIP: the client saves one without looking into it",
        (("imprimatur/releases.py", "saving.finish(lambda file: check_bundle(file, certificate))", "saving.finish()"),),
        (f"{T_SAVED}::test_no_other_zip_is_saved",),
    ),
    Bug(
        "client: what was read from a frame's rows is declared without being agreed to",
        (("imprimatur/frame_schemas.py", "if undeclared and not accept_draft:", "if False:"),),
        (f"{T_FRAMES}::test_what_was_read_from_rows_is_no_declaration",),
    ),
    Bug(
        "client: categories that polars made of the rows count as declared",
        (("imprimatur/frame_columns.py", "isinstance(dtype, self._polars.Enum)", "dtype == self._polars.Categorical"),),
        (f"{T_FRAMES}::test_what_was_read_from_rows_is_no_declaration",),
    ),
    Bug(
        "client: categories that are identifiers count as declared",
        (("imprimatur/tables.py", "if not values or len(values) > max(_FEW, rows // 2):", "if not values:"),),
        (f"{T_FRAMES}::test_what_was_read_from_rows_is_no_declaration",),
    ),
    Bug(
        "client: a draft of a frame lists values that occur once",
        (("imprimatur/frame_domains.py", "for text, times in counts.items() if times > 1)", "for text in counts)"),),
        (f"{T_FRAMES}::test_what_occurs_once_is_not_listed",),
    ),
    Bug(
        "client: a draft of a frame lists what looks like e-mail addresses",
        (("imprimatur/frame_domains.py", "if look := look_of(counts):", "if look := None:"),),
        (f"{T_FRAMES}::test_no_draft_lists_what_points_to_a_person",),
    ),
    Bug(
        "client: whose the rows of a frame are is not asked",
        (
            (
                "imprimatur/frame_schemas.py",
                "    named = person_columns(schema, names)\n",
                "    named: list[str] = []\n",
            ),
        ),
        (f"{T_FRAMES}::test_a_person_id_is_asked_about",),
    ),
    Bug(
        "client: each try of an order has a key of its own",
        (
            (
                "imprimatur/asking.py",
                "                reply = yield ask\n",
                '                reply = yield replace(ask, headers={**ask.headers, "Idempotency-Key": str(random.random())})\n',
            ),
            ("imprimatur/asking.py", "import random\n", "import random\nfrom dataclasses import replace\n"),
        ),
        ("tests/imprimatur/test_client.py::test_an_order_whose_answer_was_lost_is_not_ordered_twice",),
    ),
    Bug(
        "client: whether a file can be written is found out after the order",
        (("imprimatur/preflight.py", "        check_writable(file)\n", ""),),
        ("tests/imprimatur/test_preflight.py::test_where_no_file_can_be_made",),
    ),
    Bug(
        "same rows: what a declaration leaves out is compared in every tenant",
        (("service/datasets/repository.py", "of_own & (Dataset.tenant_id == tenant_id)", "of_own"),),
        (
            "tests/service/http/test_same_rows_api.py::test_what_one_declaration_leaves_out_and_another_models_opens_no_second_budget_in_a_tenant",
        ),
    ),
    Bug(
        "same rows: what a declaration leaves out has no fingerprint",
        (
            (
                "service/intake/child.py",
                "            [n for n in table.names if n not in derived and n not in stored],\n",
                "",
            ),
        ),
        (
            "tests/service/intake/table/test_column_fingerprint.py::test_half_of_the_columns_modelled_and_then_the_other_half_is_recognised_within_a_tenant",
        ),
    ),
    Bug(
        "published ZIP: a network with external data is loaded",
        (("service/samples/onnx_files.py", '    "tensor": {13: "external data", 14: "external data"},\n', ""),),
        ("tests/service/samples/test_onnx_files.py::test_what_names_another_file_is_refused",),
    ),
    Bug(
        "verify: a self-signed certificate passes",
        ((VERIFICATION, "        checks.self_signed = True\n", '        checks.anchors.append("its own key")\n'),),
        (f"{T_FILES}::test_a_self_made_certificate_is_self_signed_whatever_it_holds",),
    ),
    Bug(
        "verify: what only the service says is called verified",
        ((CHECKS, "return Result.VERIFIED if self.anchors else Result.CONSISTENT", "return Result.VERIFIED"),),
        (f"{T_REMEMBERED}::test_the_first_time_is_consistent_and_the_next_is_verified",),
    ),
    Bug(
        "verify: a remembered head is not compared",
        ((LEDGER_CHECKS, "kept = kept_heads(memory, named)", "kept = kept_heads(None, named)"),),
        (f"{T_REMEMBERED}::test_a_rewritten_log_of_another_dataset_is_found_by_the_head",),
    ),
    Bug(
        "verify: a remembered ledger is not compared",
        ((LEDGER_CHECKS, "        same = len(entries) >= seen.entries and ", "        same = True or "),),
        (f"{T_REMEMBERED}::test_a_ledger_that_ends_earlier_is_found_although_the_log_holds",),
    ),
    Bug(
        "verify: a changed key is taken although the pinned one does not endorse it",
        ((TRUST, "            if served and served[-1].id not in ", "            if False and served[-1].id not in "),),
        (f"{T_REMEMBERED}::test_a_changed_key_is_refused_unless_the_pinned_one_endorses_it",),
    ),
    # -- another declaration
    Bug(
        "an order priced under a replaced declaration is reserved",
        ((DECLARATIONS, "ELSIF held.declaration <> ledger_reserve.declaration THEN", "ELSIF false THEN"),),
        (T_RACES,),
    ),
    Bug(
        "a new declaration that waited for a charge is let in",
        (
            (
                PROMISED,
                (
                    "    IF held.dataset_id IS NULL THEN outcome := 'no_account'; RETURN; END IF;\n"
                    "    IF EXISTS (SELECT FROM public.ledger_entries AS e WHERE e.dataset_id = dataset AND e.kind = 'post') THEN\n"
                    "        outcome := 'charged'; RETURN;\n"
                    "    END IF;\n"
                    "    SELECT array_agg(e.release_id ORDER BY e.seq) INTO open_releases FROM public.ledger_entries AS e\n"
                    "        WHERE e.dataset_id = dataset AND e.kind = 'reserve' AND NOT EXISTS (\n"
                    "            SELECT FROM public.ledger_entries AS v WHERE v.release_id = e.release_id AND v.kind = 'void');\n"
                ),
                (
                    "    IF held.dataset_id IS NULL THEN outcome := 'no_account'; RETURN; END IF;\n"
                    "    SELECT array_agg(e.release_id ORDER BY e.seq) INTO open_releases FROM public.ledger_entries AS e\n"
                    "        WHERE e.dataset_id = dataset AND e.kind = 'reserve' AND NOT EXISTS (\n"
                    "            SELECT FROM public.ledger_entries AS v WHERE v.release_id = e.release_id AND v.kind <> 'reserve');\n"
                ),
            ),
        ),
        (T_RACES,),
    ),
    Bug(
        "a new declaration beside a reserved order",
        ((PROMISED, "IF open_releases IS NOT NULL THEN outcome := 'ordered'; RETURN; END IF;", ""),),
        (T_RACES,),
    ),
    Bug(
        "a release needs no reservation",
        ((PROMISED, "WHERE e.release_id = NEW.id AND e.kind = 'reserve'", "WHERE e.kind = 'reserve' OR true"),),
        (f"{T_PROMISED}::test_no_release_is_written_without_its_reservation",),
    ),
    Bug(
        "a release may be of one tenant on the rows of another",
        ((PROMISED, "AND d.tenant_id = NEW.tenant_id", ""),),
        (f"{T_PROMISED}::test_no_release_is_written_without_its_reservation",),
    ),
    Bug(
        "the API's role raises the capacity of an account that is not charged yet",
        (
            (
                PROMISED,
                "IF NEW.renyi_capacity > public.largest_capacity(",
                "IF false AND NEW.renyi_capacity > public.largest_capacity(",
            ),
        ),
        (f"{T_PROMISED}::test_a_promise_that_is_not_charged_yet_is_not_weakened",),
    ),
    Bug(
        "the API's role raises the δ of a promise that is not charged yet",
        ((PROMISED, "IF NEW.delta > OLD.delta * rounding AND NOT (", "IF false AND NOT ("),),
        (f"{T_PROMISED}::test_a_promise_that_is_not_charged_yet_is_not_weakened",),
    ),
    Bug(
        "rows that were stored under one privacy unit stay under another",
        (
            (
                PROMISED,
                "IF dataset_redeclare.storage_key IS NOT DISTINCT FROM before_.storage_key THEN",
                "IF false THEN",
            ),
        ),
        (f"{T_PROMISED}::test_a_promise_that_is_not_charged_yet_is_not_weakened",),
    ),
    Bug(
        "rows come back under another declaration, an upload for another key",
        ((PROMISED, "WHERE n.name IS NOT NULL AND n.name IS DISTINCT FROM n.before_;", "WHERE false;"),),
        (
            f"{T_PROMISED}::test_rows_do_not_come_back_under_another_declaration",
            f"{T_PROMISED}::test_an_upload_does_not_come_back_as_that_of_another_key",
        ),
    ),
    Bug(
        "a copy of rows opens under another name, and under another privacy unit",
        ((STORED, 'json.dumps(["rows", name, unit and unit.as_json()], sort_keys=True)', '""'),),
        (
            f"{T_COPIED}::test_rows_under_another_unit_do_not_come_back_as_a_copy",
            f"{T_COPIED}::test_a_copy_that_begins_like_the_rows_is_noticed_when_it_is_read",
        ),
    ),
    Bug(
        "a copy of a kept upload is read anew, for another key",
        ((STORED, "json.dumps([UPLOAD, name, str(key_id)])", "UPLOAD"),),
        (f"{T_COPIED}::test_a_kept_upload_gets_no_fresh_readings_as_a_copy",),
    ),
    Bug(
        "a copy takes on a name under which objects from before open",
        (
            (BOUND, "NEW.storage_key ~ from_before AND", "false AND"),
            (BOUND, "NEW.upload_key ~ from_before AND", "false AND"),
        ),
        (f"{T_PROMISED}::test_names_of_what_was_stored_before_are_taken_on_by_no_row",),
    ),
    Bug(
        "rows that somebody moved are charged before that is noticed",
        ((RUN, "not self.patiently(StoredRows(self).are_its_own)", "False"),),
        (f"{T_COPIED}::test_rows_under_another_unit_do_not_come_back_as_a_copy",),
    ),
    Bug(
        "who calls the functions erases and cancels without a line",
        (
            (BOUND, "    IF FOUND THEN PERFORM", "    IF false THEN PERFORM"),
            (BOUND, "    IF outcome = 'done' THEN PERFORM", "    IF false THEN PERFORM"),
        ),
        (f"{T_PROMISED}::test_erasing_and_cancelling_have_their_lines_whoever_asks",),
    ),
    Bug(
        "a worker takes a row's word for the unit of the stored rows",
        (("workers/stored_rows.py", "if names_units(rows) != (self._dataset.unit is not None):", "if False:"),),
        (f"{T_PROMISE}::test_rows_are_read_under_the_unit_alone_that_they_were_stored_under",),
    ),
    Bug(
        "who writes to the database begins a session of the page",
        (
            (
                "service/platform/crypto.py",
                'return [hmac.digest(root, b"\\xff" + token.encode(), hashlib.sha256) for root in self.ring.api_keys]',
                "return [hashlib.sha256(token.encode()).digest()]",
            ),
        ),
        (f"{T_SIGN_IN}::test_who_writes_to_the_database_begins_no_session",),
    ),
    Bug(
        "the digest of a session is that of a text that can be sent as an API key",
        (("service/platform/crypto.py", 'b"\\xff" + token.encode()', 'b"page session " + token.encode()'),),
        (f"{T_SIGN_IN}::test_a_session_s_digest_is_that_of_no_api_key",),
    ),
    Bug(
        "a session is that of the key that its row names",
        (("service/auth/sessions.py", 'if not token.endswith(f".{key_id.hex}"):', "if False:"),),
        (f"{T_SIGN_IN}::test_who_writes_to_the_database_gives_no_session_another_key",),
    ),
    Bug(
        "a staged file opens for the key that its row names",
        ((STAGING, 'return f"{staged_id}/{STAGED}/{key_id}"', 'return f"{staged_id}/{STAGED}"'),),
        (f"{T_WALK}::test_a_row_that_names_another_key_opens_nothing",),
    ),
    Bug(
        "a stored price with an infinite figure states enough",
        (("workers/fitting.py", "if is_number and math.isfinite(value) else", "if is_number else"),),
        (f"{T_FITTING}::test_a_price_without_a_figure_states_too_little",),
    ),
    Bug(
        "any owner key has the kept upload read again",
        ((DATASET_ROWS, "            Dataset.upload_key_id == key_id,\n", ""),),
        (f"{T_REDECLARATION}::test_only_the_key_that_sent_the_upload_has_it_read_again",),
    ),
    Bug(
        "a column's name is in its fingerprint",
        (
            (
                COLUMN_FINGERPRINT,
                'self._digest("column", one.sum): one for one',
                'self._digest(f"column {name}", one.sum): one for one',
            ),
        ),
        (T_COLUMN_FINGERPRINT,),
    ),
    Bug(
        "a constant column counts as a difference",
        ((COLUMN_FINGERPRINT, "LEAST_BITS = 1.0", "LEAST_BITS = -1.0"),),
        (T_COLUMN_FINGERPRINT,),
    ),
    Bug(
        "most columns of the larger table must match",
        ((ALIKE, "smaller = min(count_columns", "smaller = max(count_columns"),),
        (T_COLUMN_FINGERPRINT,),
    ),
    Bug(
        "unit ids are a column like the others",
        (
            (
                INGEST_CHILD,
                "            [n for n in table.names if n in modelled],\n",
                "            table.names,\n",
            ),
        ),
        (T_COLUMN_FINGERPRINT,),
    ),
    Bug(
        "another cell in an ignored column makes other rows",
        ((INGEST_CHILD, "    if len(stored) == len(table.names):\n", "    if stored:\n"),),
        (T_UPLOADED_RELATIONS,),
    ),
    Bug(
        "the same file under other roles is other rows",
        (
            (
                INGEST_CHILD,
                "    return [stored, table.names]\n",
                "    return [stored]\n",
            ),
        ),
        (T_UPLOADED_RELATIONS,),
    ),
    Bug(
        "ignored columns count among those that match",
        (
            (
                INGEST_CHILD,
                "            [n for n in table.names if n in modelled],\n",
                "            [n for n in table.names if unit is None or n != unit.column],\n",
            ),
        ),
        (T_UPLOADED_RELATIONS,),
    ),
    Bug(
        "columns with a role are stored",
        ((UPLOADED_RELATIONS, "self._is_all = schema.modelled is schema", "self._is_all = True"),),
        (T_UPLOADED_RELATIONS,),
    ),
    Bug(
        "fine categories of one coarse category are told apart",
        (
            (
                UPLOADED_RELATIONS,
                "        if name not in self._levels:\n            return cells\n",
                "        return cells\n",
            ),
        ),
        (T_UPLOADED_RELATIONS,),
    ),
    Bug(
        "cells are compared before they are clamped",
        (
            (
                COLUMN_FINGERPRINT,
                "if declared is not None and declared.altered.any():",
                "if False and declared is not None:",
            ),
        ),
        (T_COLUMN_FINGERPRINT,),
    ),
    Bug(
        "any column counts as evidence, however little it says",
        ((ALIKE, " and evidence(bits, smaller) >= LEAST_EVIDENCE", ""),),
        (T_COLUMN_FINGERPRINT,),
    ),
    Bug(
        "two uploads at once do not see each other",
        (
            (
                DATASETS,
                "            repository.lock_fingerprints(session)\n            _refuse_duplicate(session, principal, table, declaration)\n",
                "            repository.lock_fingerprints(session)\n",
            ),
        ),
        (f"{T_SAME_ROWS}::test_of_two_uploads_at_once_one_is_refused",),
    ),
    Bug(
        "an owner's word is not written into the audit log",
        (
            (
                DATASETS,
                '                audit.record(session, principal, "dataset", other, action=DECLARE_DISTINCT)\n',
                "                pass\n",
            ),
        ),
        (f"{T_SAME_ROWS}::test_an_owner_may_say_that_rows_are_other_peoples_and_the_audit_log_keeps_it",),
    ),
    Bug(
        "an owner's word lets the very same rows in",
        (
            (
                KNOWN_ROWS,
                "    if known is not None:\n        if known.tenant_id",
                "    if known is not None and known.id not in distinct_from:\n        if known.tenant_id",
            ),
        ),
        (f"{T_SAME_ROWS}::test_whole_rows_are_the_same_whatever_an_owner_says",),
    ),
    # -- what a certificate says
    Bug(
        "a certificate without the releases before the steps",
        (
            (
                CERTIFICATE,
                "(each for run in events for each",
                "(each for run in [e for e in events if e.private_steps] or events for each",
            ),
        ),
        (T_CERTIFICATE,),
    ),
    Bug(
        "a certificate tells the sensitivity of one row where a unit has several",
        ((CERTIFICATE, 'most_rows=contribution_bound(dataset)["max_rows"]', "most_rows=1"),),
        (T_CERTIFICATE,),
    ),
    Bug(
        "an audit of other code passes for one of this",
        (
            (
                "workers/audited.py",
                'same_code = summary["code_digest"] == running_digest',
                'same_code = summary["code_version"] == running_version',
            ),
        ),
        (T_CERTIFICATE,),
    ),
    Bug(
        "the digest of the audited code leaves out what lies in folders",
        (("workers/audited.py", 'folder.rglob("*")', "folder.iterdir()"),),
        (f"{T_CERTIFICATE}::test_the_digest_covers_every_source_of_the_mechanisms",),
    ),
    Bug(
        "other releases that are still running are not told of",
        (
            (
                "service/ledger/repository.py",
                "sum(simple) FILTER (WHERE kind <> 'void')",
                "sum(simple) FILTER (WHERE kind IN ('post', 'settle'))",
            ),
        ),
        ("tests/service/ledger/test_ledger.py::test_what_other_releases_cost",),
    ),
    Bug(
        "the same rows pass as declared alike, whatever was declared",
        (
            (
                KNOWN_ROWS,
                "    return (declared, known.privacy_unit, known.rows_are_public) == said\n",
                "    return True\n",
            ),
        ),
        ("tests/service/http/test_datasets_api.py::test_the_same_rows_say_whether_they_are_declared_alike",),
    ),
    Bug(
        "an entry of the registry whose intended use was made up",
        (
            (
                "imprimatur/cli/certificates.py",
                "    if missing and not allow_missing:\n",
                "    if not typed and not allow_missing:\n",
            ),
        ),
        ("tests/imprimatur/cli/test_certificates.py::test_nothing_is_made_up_for_the_curator",),
    ),
    Bug(
        "a method that cannot run is found out after the charge",
        ((RUN, "        run_class(self.release.order)  # a method that cannot run here must not be charged\n", ""),),
        (f"{T_DISTRIBUTIONS}::test_a_release_of_a_method_without_a_run_is_not_charged",),
    ),
    Bug(
        "an order for a GPU that is not there is charged",
        ((RUN, "finished is None and not self.has_device():", "False:"),),
        ("tests/workers/test_training.py::test_an_order_for_a_gpu_that_is_not_there_is_not_charged",),
    ),
    Bug(
        "clip norms that are meant to be public follow private records",
        (
            (
                PUBLIC,
                "self._batch_of(*self._public_rows(np.sort(chosen)))",
                "self._critic_batch(np.arange(min(wanted, self.units)))",
            ),
        ),
        (f"{T_COMPARISONS}::test_clip_norms_come_from_public_images_alone",),
    ),
    Bug(
        "public records are like the private ones",
        (
            (
                PUBLIC,
                "        return made_up_images(self.shape, self.order.public_records, self.classes, places=self.bounds.rows_per_unit)\n",
                "        return self.images\n",
            ),
        ),
        (f"{T_COMPARISONS}::test_clip_norms_come_from_public_images_alone",),
    ),
    Bug(
        "a run goes on where its checkpoint was taken, and charges the last step again",
        ((PLAN, "        while self.position < position:\n", "        while self.position < position - 1:\n"),),
        ("tests/workers/methods/test_run_contract.py::test_a_resumed_run_charges_nothing_twice",),
    ),
    Bug(
        "answers that are not finite fail after the charge unexplained",
        (("workers/generators/answers.py", "    _check(dict(answers))\n", ""),),
        ("tests/service/http/test_answers.py::test_answers_that_are_not_finite_are_not_published",),
    ),
    Bug(
        "answers are taken for a generator",
        (("service/samples/samplers.py", 'config.get("kind") == ANSWERS', "False"),),
        ("tests/service/http/test_answers.py",),
    ),
    Bug(
        "answers are read without a line in the audit log",
        (
            (
                "service/releases/service.py",
                "find_published(context, principal, release_id)\n    return answers_of_bundle(",
                "find(context, principal, release_id)\n    return answers_of_bundle(",
            ),
        ),
        ("tests/service/http/test_answers.py",),
    ),
    Bug(
        "the API's description leaves out methods",
        (("service/http/openapi.py", "tuple(ORDERS.values())", "tuple(list(ORDERS.values())[:4])"),),
        ("tests/service/http/test_methods_api.py",),
    ),
    Bug(
        "a training that is stopped before it knows how far it had come is settled at nothing",
        (
            (
                "workers/training.py",
                "    device = choose_device(order.device)\n",
                "    hooks.stop_if_asked(plan.steps_done)\n    device = choose_device(order.device)\n",
            ),
        ),
        ("tests/workers/test_resume.py::test_one_that_is_stopped_at_once_stands_where_the_last_one_came_to",),
    ),
    Bug(
        "a stored event may happen one and a half times",
        ((EVENT_KINDS, "    if type(count) is not int or count < 1:\n", "    if count < 1:\n"),),
        ("tests/service/privacy/test_events.py::test_a_stored_list_that_is_none_is_refused",),
    ),
    Bug(
        "the same values in another spelling are other columns",
        (("service/intake/table/canonical.py", "            altered |= values.is_not_null()\n", "            pass\n"),),
        (f"{T_SPELLED}::test_the_same_values_spelled_otherwise_are_the_same_columns",),
    ),
    Bug(
        "a new text format forgets formulas",
        (("service/samples/formats.py", '"application/x-ndjson"', '"text/x-ndjson"'),),
        ("tests/service/samples/test_formulas.py::test_every_text_format_is_disarmed_on_demand",),
    ),
    Bug(
        "CSV for Excel forgets formulas",
        (
            (
                "service/samples/row_streams.py",
                "_csv(draws, sampler, disarmed, layout)",
                "_csv(draws, sampler, str, layout)",
            ),
        ),
        ("tests/service/samples/test_excel_samples.py::test_numbers_are_numbers_and_texts_are_texts",),
    ),
    Bug(
        "a missing marker of one column forgets formulas",
        (("service/samples/row_streams.py", "self.written(column.missing_value)", "column.missing_value"),),
        ("tests/service/samples/test_formulas.py::test_a_missing_marker_of_one_column_is_disarmed_too",),
    ),
    Bug(
        "the largest ε that fits is rounded up where it is shown",
        (
            ("imprimatur/cli/output.py", "rounding=ROUND_FLOOR", "rounding=ROUND_CEILING"),
            ("imprimatur/cli/output.py", "import ROUND_FLOOR,", "import ROUND_CEILING,"),
        ),
        ("tests/imprimatur/cli/test_rounding.py",),
    ),
    Bug(
        "a settlement may be below what was recorded",
        ((ROLES, "r.state = 'published' OR r.recorded_renyi > ledger_settle.renyi", "r.state = 'published'"),),
        (f"{T_ROLES}::test_nor_to_a_worker",),
    ),
    Bug(
        "steps are recorded after their checkpoint is stored",
        (
            (
                KEPT,
                "            leases.record_steps(session, lease, steps=steps, renyi=self._attempt.cost_after(steps))\n        key = self",
                "            pass\n        key = self",
            ),
            (
                KEPT,
                "            leases.record_checkpoint(session, lease, key=key)\n",
                (
                    "            leases.record_steps(session, lease, steps=steps, renyi=self._attempt.cost_after(steps))\n"
                    "            leases.record_checkpoint(session, lease, key=key)\n"
                ),
            ),
        ),
        ("tests/workers/test_recorded_steps.py",),
    ),
    Bug(
        "the API's role may settle",
        (
            (
                ROLES,
                "public.dataset_redeclare, public.dataset_erase, public.release_cancel,",
                "public.dataset_redeclare, public.ledger_settle, public.dataset_erase, public.release_cancel,",
            ),
        ),
        (f"{T_ROLES}::test_what_was_seen_is_not_given_back_to_the_api",),
    ),
    Bug(
        "the Rényi account is as large as the API's role says",
        ((PROMISE, "min(capacity, renyi_capacity(epsilon, delta / 2.0, renyi_order))", "capacity"),),
        (f"{T_PROMISE}::test_the_api_s_role_cannot_make_room_in_the_renyi_account",),
    ),
    Bug(
        "recorded steps may be lowered",
        ((ROLES, "NEW.recorded_renyi < OLD.recorded_renyi", "false"),),
        (f"{T_ROLES}::test_recorded_steps_only_ever_grow",),
    ),
    Bug(
        "a checkpoint may be named before its steps are recorded",
        ((LAST_ROLE, "NEW.recorded_token <> NEW.lease_token OR EXISTS (", "EXISTS ("),),
        (f"{T_ROLES}::test_no_checkpoint_is_named_before_its_steps_are_recorded",),
    ),
    Bug(
        "an attempt settles at its own steps although more were recorded",
        (("workers/lease.py", "max(settled_renyi, row.recorded_renyi)", "settled_renyi"),),
        (f"{T_ROLES}::test_an_attempt_that_knows_of_fewer_steps_than_were_recorded_settles_at_the_recorded_ones",),
    ),
    Bug(
        "a revoked key can be revived",
        ((ROLES, "(OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)", "(false)"),),
        (f"{T_ROLES}::test_a_key_that_has_ended_stays_ended",),
    ),
    Bug(
        "the embedded Postgres trusts whom it finds at its socket",
        (
            (
                "service/local/database_access.py",
                "local   all       all   scram-sha-256\n",
                "local   all       all   trust\n",
            ),
        ),
        ("tests/service/local/test_database_access.py::test_each_role_logs_in_by_its_own_password_and_no_one_without",),
    ),
    Bug(
        "a knob of one kind is listed without its kind",
        (("imprimatur/cli/knobs.py", "skip=tag)", "skip=None)"),),
        ("tests/imprimatur/cli/test_knobs.py",),
    ),
    Bug(
        "a lost secret key file is made anew beside data",
        (("service/upkeep/installation.py", "if not path.exists() and has_data:", "if False:"),),
        ("tests/service/upkeep/test_rotation.py::test_a_lost_file_is_never_made_anew_beside_data",),
    ),
    Bug(
        "a rotation replaces the root of the fingerprints, so that the same rows get a second budget",
        (
            (
                "service/upkeep/rotation.py",
                "                first_signing=(),\n",
                "                fingerprints=(os.urandom(KEY_BYTES),),\n                first_signing=(),\n",
            ),
        ),
        ("tests/service/upkeep/test_rotation.py::test_rotation_wraps_old_data_anew_and_finish_takes_the_old_root_out",),
    ),
    Bug(
        "the old root leaves the file before everything is wrapped anew",
        (
            (
                "service/upkeep/rotation.py",
                "        wrapped += sum(_wrap_one(session, ring, row) for row in _rows(session, None, limit=None))\n",
                "",
            ),
            (
                "service/upkeep/rotation.py",
                "    wrapped = _wrap_all(settings, ring, on_progress)\n    with",
                "    wrapped = 0\n    with",
            ),
        ),
        ("tests/service/upkeep/test_rotation.py::test_an_upload_between_rotate_and_finish_is_wrapped_anew",),
    ),
    Bug(
        "a rotation after a broken-off finish makes no new root and says that it rotated",
        (
            (
                "service/upkeep/rotation.py",
                "ring = _without_retired(session, _checked_ring(session, settings))",
                "ring = _checked_ring(session, settings)",
            ),
        ),
        (f"{T_ROTATION}::test_a_finish_that_is_broken_off_before_its_file_hinders_no_later_rotation",),
    ),
    Bug(
        "a new root is in front of the file before the database knows it",
        (
            (
                "service/upkeep/rotation.py",
                "        newest = _newest_first(session, ring)\n        secret_roots.register(session, newest)\n",
                "        newest = _newest_first(session, ring)\n",
            ),
            (
                "service/upkeep/rotation.py",
                "        write(settings, newest)\n    return",
                "        write(settings, newest)\n        secret_roots.register(session, newest)\n    return",
            ),
        ),
        (f"{T_ROTATION}::test_no_root_is_used_that_the_database_does_not_know",),
    ),
    Bug(
        "finish after a broken-off rotate takes the new root out, and the old one stays",
        (("service/upkeep/rotation.py", "if _newest_first(session, ring) != ring or any(", "if any("),),
        (f"{T_ROTATION}::test_no_root_is_used_that_the_database_does_not_know",),
    ),
    Bug(
        "a certificate in a ZIP is unpacked however large it says it is",
        (
            (
                "imprimatur/verify/members.py",
                "    if found is None or found.size > MOST_CERTIFICATE_BYTES:\n",
                "    if found is None:\n",
            ),
        ),
        ("tests/imprimatur/cli/test_verification_files.py::test_a_zip_of_another_form_is_no_generator_zip",),
    ),
    Bug(
        "a certificate in a ZIP is unpacked further than it says it is",
        (("imprimatur/verify/members.py", "            if given > member.size:\n", "            if False:\n"),),
        (
            "tests/imprimatur/cli/test_verification_files.py::test_never_more_of_a_certificate_is_unpacked_than_one_can_have",
        ),
    ),
    Bug(
        "everybody can hold up all workers",
        ((LOCKS, '        connection.exec_driver_sql(new.replace("%", "%%"))\n', ""),),
        (f"{T_ROLES}::test_no_role_holds_up_what_is_not_its_own",),
    ),
    Bug(
        "two calls at once give out the same places",
        ((LOCKS, 'f"LOCK TABLE public.{table} IN EXCLUSIVE MODE;"', '"NULL;"'),),
        (f"{T_ROLES}::test_one_call_at_a_time_by_a_lock_that_no_role_takes",),
    ),
    Bug(
        "temporary tables and large objects are for everybody",
        ((LOCKS, '    connection.exec_driver_sql(RIGHTS.replace("%", "%%"))\n', ""),),
        (f"{T_ROLES}::test_no_role_makes_temporary_tables_or_large_objects",),
    ),
    Bug(
        "settings that a role gave itself pass the check",
        (("service/upkeep/checks.py", "    if found:\n        of = [", "    if False:\n        of = ["),),
        ("tests/service/upkeep/test_checks_of_roles.py::test_settings_that_a_role_gave_itself_are_noticed",),
    ),
    Bug(
        "tenants are not served in turn",
        (
            (
                QUEUE,
                "ORDER BY coalesce(h.number, 0), coalesce(t.served, 0), w.tenant_id\n",
                "ORDER BY w.tenant_id\n",
            ),
        ),
        (f"{T_QUEUE}::test_tenants_take_turns_whatever_they_have_ordered",),
    ),
    Bug(
        "what a tenant has running does not count",
        (
            (
                QUEUE,
                "ORDER BY coalesce(h.number, 0), coalesce(t.served, 0), w.tenant_id\n",
                "ORDER BY coalesce(t.served, 0), w.tenant_id\n",
            ),
        ),
        (f"{T_QUEUE}::test_the_tenant_with_the_fewest_claims_held_is_first",),
    ),
    Bug(
        "keys of a tenant are not served in turn",
        (
            (
                QUEUE,
                "ORDER BY coalesce(h.number, 0), coalesce(t.served, 0), w.key_id\n",
                "ORDER BY w.key_id\n",
            ),
        ),
        (f"{T_QUEUE}::test_keys_of_a_tenant_take_turns_and_gain_nothing_over_another_tenant",),
    ),
    Bug(
        "a release that another transaction holds stops the queue",
        ((QUEUE, "LIMIT 1 FOR UPDATE SKIP LOCKED;", "LIMIT 1 FOR UPDATE NOWAIT;"),),
        (f"{T_QUEUE}::test_a_row_that_somebody_holds_is_passed_over",),
    ),
    Bug(
        "two orders at once take the last place of a key",
        (
            (
                QUEUE,
                "    PERFORM pg_advisory_xact_lock(hashtextextended('imprimatur open orders ' || tenant, 0));\n",
                "",
            ),
        ),
        ("tests/service/http/test_open_orders.py::test_two_orders_at_once_do_not_both_take_the_last_place",),
    ),
    Bug(
        "a message says when it is to be worked on",
        (
            (
                "workers/doorbell.py",
                '        message.headers = {"lang": "py", "task": task.name, "id": str(uuid.uuid4())}\n',
                "",
            ),
        ),
        ("tests/workers/test_doorbell.py::test_a_forged_message_can_only_wake_a_worker",),
    ),
    Bug(
        "workers take commands from the broker",
        (("workers/app.py", "    worker_enable_remote_control=False,\n", ""),),
        ("tests/workers/test_doorbell.py::test_no_command_is_taken_from_the_broker",),
    ),
    Bug(
        "what is no message ends a worker",
        (("workers/app.py", "\nuse_for_redis()\n", "\n"),),
        ("tests/workers/test_doorbell.py::test_what_is_no_message_at_all_is_passed_over",),
    ),
    Bug(
        "a worker waits for its broker",
        (("workers/tasks.py", "    looks.start()\n", ""),),
        ("tests/workers/test_doorbell.py::test_a_worker_looks_by_itself_when_no_bell_rings",),
    ),
    Bug(
        "a failed login is logged with the key that was tried",
        (
            (
                "service/auth/dependencies.py",
                'None if reason == "missing" else digest[:4].hex()',
                'request.headers.get("authorization")',
            ),
        ),
        (f"{T_SURFACE}::test_no_line_holds_a_key",),
    ),
    Bug(
        "a training goes on from whatever lies in the place of its checkpoint",
        ((KEPT, "self._storage.get_content(key)", "self._storage.get(key)"),),
        ("tests/service/http/test_previews.py::test_the_preview_is_that_of_the_recorded_checkpoint",),
    ),
    Bug(
        "a worker in a container gets all roots of the secret key file",
        (("docker-compose.yml", "IMPRIMATUR_SECRET_KEY_FILE: /secrets/worker.key", "COMMENT: none"),),
        ("tests/test_compose.py::test_a_worker_reads_its_part_of_the_secret_key_file_alone",),
    ),
    Bug(
        "a refusal is logged with the path as it was sent",
        (("service/http/refusals.py", 'getattr(scope.get("route"), "path", "unmatched")', 'scope["path"]'),),
        (f"{T_SURFACE}::test_a_caller_begins_no_line_of_their_own",),
    ),
    Bug(
        "uploads that are refused for their rows are counted for strangers",
        (("service/http/refusals.py", "{401, 403, 404,", "{401, 403, 422, 404,"),),
        (f"{T_SURFACE}::test_refusals_at_the_door_leave_a_line_each_and_are_counted",),
    ),
    Bug(
        "a key with an end makes one without",
        (
            (
                "service/auth/service.py",
                "    if wanted is None:\n        return callers_end\n",
                "    if wanted is None:\n        return None\n",
            ),
        ),
        ("tests/service/http/test_doors.py::test_a_key_makes_none_that_outlives_it",),
    ),
    Bug(
        "a replacement lives as long as the old key, whatever the end of the key that asks",
        (("service/auth/service.py", "else min(as_long, expires_at)", "else as_long"),),
        ("tests/service/http/test_doors.py::test_a_key_makes_none_that_outlives_it",),
    ),
    Bug(
        "quick routes answer outside of the security headers",
        (
            (APP, "    app.add_middleware(SecurityHeaders, behind_tls=settings.behind_tls)\n", ""),
            (
                APP,
                "    app.add_middleware(QuickRoutes, routers=",
                (
                    "    app.add_middleware(SecurityHeaders, behind_tls=context.settings.behind_tls)\n"
                    "    app.add_middleware(QuickRoutes, routers="
                ),
            ),
        ),
        (f"{T_SURFACE}::test_no_reply_goes_without_the_headers",),
    ),
    Bug(
        "an address that the caller has written is believed",
        (("service/http/protocol.py", "            self.app = self.app.app\n", "            pass\n"),),
        (f"{T_SURFACE}::test_a_forged_address_evades_no_limit_where_the_option_was_forgotten",),
    ),
    Bug(
        "a slash too many redirects to the Host that the caller has named",
        ((APP, "        redirect_slashes=False,\n", ""),),
        (f"{T_SURFACE}::test_no_redirect_and_no_link_leads_to_the_callers_host",),
    ),
    Bug(
        "names of columns are Markdown in the model card",
        (("workers/generators/table/card.py", "{escaped(column.name)}", "{column.name}"),),
        ("tests/workers/test_card_names.py::test_a_card_of_a_table_shows_its_columns",),
    ),
    Bug(
        "the labels of an image sample forget formulas",
        (("service/samples/image_streams.py", "_csv_cell(written(", "_csv_cell(str("),),
        ("tests/service/samples/test_image_streams.py",),
    ),
    Bug(
        "names that others gave reach the terminal as they are",
        (("imprimatur/cli/output.py", "escape(visible(str(value), keep=keep))", "escape(str(value))"),),
        ("tests/imprimatur/cli/test_names_of_others.py",),
    ),
    Bug(
        "a part of the service runs before anything knows of it",
        (("service/local/supervisor.py", "(*GATE, *program.command)", "program.command"),),
        ("tests/service/local/test_supervisor.py::test_a_child_that_nothing_knows_of_yet_does_not_run",),
    ),
    # -- uploads on disk, and the process that reads them
    Bug(
        "reading process: the keys are in its environment",
        ((INGEST_PARENT, "        env=_environment(),\n", "        env=_environment() | {'JOB': json.dumps(job)},\n"),),
        (f"{T_SANDBOX}::test_it_has_no_environment_and_no_secret_on_its_command_line",),
    ),
    Bug(
        "reading process: it inherits the environment of the API",
        ((INGEST_PARENT, 'for name in ("LANG", "LC_ALL") if name in os.environ}', "for name in os.environ}"),),
        (f"{T_SANDBOX}::test_it_has_no_environment_and_no_secret_on_its_command_line",),
    ),
    Bug(
        "reading process: it inherits every open file",
        ((INGEST_PARENT, "pass_fds=[file.descriptor for file in files],", INHERITED),),
        (f"{T_SANDBOX}::test_it_has_the_files_that_it_was_given_and_no_other",),
    ),
    Bug(
        "reading process: calls of the kernel are not filtered",
        ((SANDBOX, "seccomp.install() and _has_no_sockets()", "seccomp.is_available()"),),
        (f"{T_SANDBOX}::test_calls_of_the_kernel_are_refused",),
    ),
    Bug(
        "reading process: every file can be read",
        ((SANDBOX, "landlocked = alone and landlock", "landlocked = not alone and landlock"),),
        (f"{T_SANDBOX}::test_nothing_but_the_interpreters_folders_can_be_read",),
    ),
    Bug(
        "reading process: it can become root again",
        ((SANDBOX, "os.setresuid(user, user, user)", "os.seteuid(user)"),),
        (f"{T_SANDBOX}::test_it_runs_as_a_user_of_its_own",),
    ),
    Bug(
        "reading process: a caller who leaves is not noticed while it says nothing",
        ((INGEST_PARENT, "with caller.taking_along(process.kill):", "with suppress():"),),
        (f"{T_LEAVING}::test_a_caller_who_leaves_takes_the_reading_process_along",),
    ),
    Bug(
        "uploads lie on disk as they came",
        (
            (
                SEALED,
                "        if self._key is None:\n            return bytes",
                "        if self._key:\n            return bytes",
            ),
        ),
        (f"{T_SEALED}::test_what_is_written_is_read_and_nothing_of_it_lies_on_disk",),
    ),
    Bug(
        "all uploads on disk have one key",
        ((SEALED, "os.urandom(KEY_BYTES)", "bytes(KEY_BYTES)"),),
        (f"{T_SEALED}::test_two_files_have_two_keys",),
    ),
    Bug(
        "a failed upload keeps its share of the quota",
        ((SPOOL, "        self._quotas.give_back(self._tenant, self._bytes)\n", ""),),
        (f"{T_TURNS}::test_a_quota_is_the_tenants_and_is_given_back_on_every_way_out",),
    ),
    Bug(
        "uploads of all tenants are read in the order in which they came",
        ((TURNS, "tenant = min(entitled, key=lambda one: self._served.get(one, 0))", "tenant = entitled[0]"),),
        (f"{T_TURNS}::test_one_tenants_many_do_not_hold_up_anothers_one",),
    ),
    # -- prices of bounded work, pages, streams
    Bug(
        "two noise levels are merged into one run",
        (
            (
                GAN_PRICE,
                "sigma, end = noise_multiplier * level, step + count",
                "sigma, end = noise_multiplier * levels[0][0], step + count",
            ),
        ),
        (f"{T_INTERLEAVED}::test_two_noise_levels_are_never_one_event",),
    ),
    Bug(
        "a run with histograms loses a step",
        ((INTERLEAVED, "False: self.count - self.histograms}", "False: self.count - self.histograms - 1}"),),
        (f"{T_INTERLEAVED}::test_it_is_accounted_as_its_steps_and_none_is_lost",),
    ),
    Bug(
        "histograms of a run are not charged",
        ((INTERLEAVED, "counts = {True: self.histograms,", "counts = {True: 0,"),),
        (f"{T_INTERLEAVED}::test_it_is_accounted_as_its_steps_and_none_is_lost",),
    ),
    Bug(
        "every step of a run is handed out as its first",
        ((PLAN, ".step(self._taken)", ".step(0)"),),
        (f"{T_PLAN}::test_interleaved_steps_are_handed_out_one_by_one_from_any_position",),
    ),
    Bug(
        "a key that has ended goes on hearing of a release",
        ((WATCHING, "watcher.key_ended or watcher.key_id in ended", "watcher.key_ended"),),
        (f"{T_WATCHING}::test_a_stream_ends_with_its_key_and_says_so",),
    ),
    Bug(
        "each of many watchers asks for itself",
        ((WATCHING, "if self._poll is None or self._poll.done():", "if True:"),),
        (f"{T_WATCHING}::test_many_watchers_cost_one_look_each_time",),
    ),
    Bug(
        "a list skips what has the same time as the end of a page",
        (
            (
                PAGING,
                "query.where(tuple_(created_at, its_id) < (self.before.created_at, self.before.id))",
                "query.where(created_at < self.before.created_at)",
            ),
        ),
        (f"{T_PAGES}::test_releases_come_in_pages_each_once_while_others_are_added",),
    ),
    Bug(
        "work is counted and never refused",
        (("service/base/work.py", "        if _thread.left < 0:\n            raise TooMuchWork\n", ""),),
        ("tests/service/base/test_work.py",),
    ),
    Bug(
        "a key may have any number of prices computed",
        (("service/methods/turns.py", "OF_A_KEY = 1\n", "OF_A_KEY = 1_000\n"),),
        ("tests/service/methods/test_bounded_pricing.py::test_a_missing_price_takes_a_turn_and_a_known_one_does_not",),
    ),
    Bug(
        "a cache is bounded in entries",
        (("service/base/caching.py", "while self.bytes > self._most_bytes:", "while len(self._values) > 4_096:"),),
        ("tests/service/base/test_caching.py::test_a_cache_is_bounded_in_bytes_and_not_in_entries",),
    ),
    Bug(
        "caches are bounded one by one, and not together",
        (("service/base/caching.py", "            self._room.shrink()\n", ""),),
        ("tests/service/base/test_caching.py::test_all_caches_of_the_service_share_one_room",),
    ),
    Bug(
        "one error is raised whenever a price was refused before, and holds the frames of every time",
        (
            (
                "service/methods/bounded.py",
                "_remember(name, error.detail, math.inf)",
                "_refused.put(name, (error, math.inf), 512)",
            ),
            ("service/methods/bounded.py", "raise TooExpensiveToPrice(refused[0][0])", "raise refused[0][0]"),
        ),
        ("tests/service/methods/test_bounded_pricing.py::test_a_refusal_that_is_remembered_holds_no_frames",),
    ),
    Bug(
        "any server passes for the broker over TLS, where its address says nothing of certificates",
        (
            (
                "service/platform/broker_address.py",
                '    return urlunsplit(parts._replace(query=urlencode(query, safe="/")))\n',
                "    return url\n",
            ),
        ),
        ("tests/test_compose_tls.py::test_an_address_that_says_nothing_of_certificates_is_checked_all_the_same",),
    ),
    Bug(
        "an address may turn off that the broker's certificate is checked",
        (
            (
                "service/platform/broker_address.py",
                "        if query.setdefault(name, wanted).lower() != wanted:\n",
                "        if not query.setdefault(name, wanted):\n",
            ),
        ),
        ("tests/test_compose_tls.py::test_no_address_turns_the_checks_off",),
    ),
    Bug(
        "the account of the service may administer the broker",
        (("service/local/servers.py", "+@all -@admin -@dangerous -@scripting", "+@all -@scripting"),),
        ("tests/service/local/test_embedded.py::test_the_account_of_the_service_may_not_administer_redis",),
    ),
    Bug(
        "the broker of one machine listens on a port, too",
        (("service/local/servers.py", 'f"port 0\\nunixsocket', 'f"port {free_port()}\\nunixsocket'),),
        (
            "tests/service/local/test_embedded.py::test_redis_is_reached_with_its_password_through_a_private_socket_and_no_other_way",
        ),
    ),
    Bug(
        "a missing setting quotes the others",
        (
            (
                "service/platform/settings.py",
                '{_what_is_wrong(error)}")',
                '{error}; {_what_is_wrong(error)}")',
            ),
        ),
        (
            "tests/service/platform/test_reasons.py::test_no_credentials_end_a_process_with_the_names_of_what_is_missing",
        ),
    ),
    Bug(
        "a database that is not migrated is our fault",
        (
            (
                "service/platform/reasons.py",
                'NOT_MIGRATED = {"42P01", "42883", "42703", "3F000"}',
                "NOT_MIGRATED: set[str] = set()",
            ),
        ),
        ("tests/service/platform/test_reasons.py::test_a_database_that_is_not_migrated",),
    ),
    Bug(
        "a storage that hangs is asked again by everybody who looks",
        (
            (
                "service/http/readiness.py",
                "            if self._look is None:\n",
                "            if True:\n",
            ),
        ),
        ("tests/service/http/test_operations.py::test_a_storage_that_hangs_holds_no_request_up_and_is_asked_once",),
    ),
    Bug(
        "heads of the log are dated by the clock of the relay's machine",
        (
            (
                "service/ledger/log.py",
                "timestamp_ms=int(1_000 * database_time(session).timestamp())",
                "timestamp_ms=int(1_000 * dt.datetime.now(dt.UTC).timestamp())",
            ),
        ),
        ("tests/service/test_one_clock.py::test_no_machine_asks_its_own_clock",),
    ),
    Bug(
        "rows end by the clock of the worker's machine",
        (
            (
                "service/datasets/models.py",
                "self.erased_at is not None or self.is_past_its_date",
                "self.erased_at is not None or bool(self.rows_expire_at and self.rows_expire_at <= dt.datetime.now(dt.UTC))",
            ),
        ),
        ("tests/service/test_one_clock.py::test_no_machine_asks_its_own_clock",),
    ),
    Bug(
        "each layer of packing may unpack as much as the whole upload",
        (
            (
                "service/intake/room.py",
                "            self._held_bytes += len(piece)\n",
                "            self._held_bytes = len(piece)\n",
            ),
        ),
        (
            "tests/service/intake/table/test_table_formats.py::test_layers_of_packing_share_one_limit",
            "tests/service/intake/table/test_table_formats.py::test_a_small_file_that_unpacks_to_much_is_refused",
        ),
    ),
    Bug(
        "the null sequence of a dialect makes other rows of the same file, with a budget of their own",
        (
            (
                "service/domain/dialect.py",
                '"missingValues": [*markers, sequence]}',
                '"missingValues": [*markers]}',
            ),
        ),
        ("tests/service/intake/table/test_dialects.py::test_a_null_sequence_is_one_more_missing_value",),
    ),
    Bug(
        "rows that a Delta table has deleted are read again",
        (("service/intake/table/unpacking.py", 'if "_delta_log" in parts or any', "if any"),),
        ("tests/service/intake/table/test_table_formats.py::test_what_is_no_table_in_a_pack_is_refused",),
    ),
    Bug(
        "a last column without a name is dropped with its values",
        (("service/intake/table/csv_reading.py", "                if cell.strip():\n", "                if False:\n"),),
        (
            "tests/service/intake/table/test_dialects.py::test_a_last_column_without_a_name_but_with_values_is_not_dropped",
        ),
    ),
    Bug(
        "a second run of the same publish pays again",
        (("imprimatur/cli/undelivered.py", "found = None if again else cls._read(path)", "found = None"),),
        (
            "tests/imprimatur/cli/test_undelivered_orders.py::test_the_same_order_has_the_same_key_until_it_is_delivered",
        ),
    ),
    Bug(
        "the explanation rounds the odds of guessing down",
        (("imprimatur/explanation.py", "math.ceil(share * tenths - 1e-9)", "math.floor(share * tenths)"),),
        ("tests/imprimatur/test_explanation.py::test_epsilon_is_said_as_odds_that_are_never_too_small",),
    ),
    Bug(
        "an error of a database shows its password",
        (("imprimatur/addresses.py", "invalid(where, without_secrets(said, place.secrets))", "invalid(where, said)"),),
        ("tests/imprimatur/test_sources.py::test_a_password_is_in_no_error",),
    ),
    Bug(
        "the client publishes without asking whose rows they are",
        (("imprimatur/operations.py", "columns = yield Work(lambda: header_of(Path(file)))", "return None"),),
        ("tests/imprimatur/test_client_publish_asks.py",),
    ),
    Bug(
        "a person's id that German writes in one word is taken for a value",
        (("imprimatur/person_columns.py", 'r" \\1", parted', 'r"\\1", parted'),),
        ("tests/service/intake/table/test_draft_findings.py::test_which_columns_may_say_whose_row_it_is_and_repeat",),
    ),
    Bug(
        "the columns of a Parquet file are not looked at for a person's id",
        (("imprimatur/person_columns.py", "            return _parquet_header(opened)", "            return []"),),
        ("tests/imprimatur/test_client_publish_asks.py",),
    ),
    Bug(
        "a folder with deleted rows is read as a table in parts",
        (("imprimatur/folders.py", 'if first == "_delta_log":', "if not first:"),),
        ("tests/imprimatur/test_stores.py::test_a_table_with_deleted_rows_is_no_folder_of_parts",),
    ),
    Bug(
        "another column that follows from the others makes other rows",
        ((INGEST_CHILD, "            [n for n in table.names if n in derived],\n", "            [],\n"),),
        (f"{T_UPLOADED_RELATIONS}::test_what_follows_from_what_opens_no_second_budget",),
    ),
    Bug(
        "columns that follow from others make a match smaller",
        (
            (ALIKE, "FIRST_DERIVED_PLACE = 1_000_000", "FIRST_DERIVED_PLACE = 2_000_000_000"),
            (ALIKE, "ROWS_PLACE < place < FIRST_DERIVED_PLACE", "ROWS_PLACE < place"),
        ),
        (f"{T_UPLOADED_RELATIONS}::test_columns_that_follow_are_no_column_of_the_number",),
    ),
    Bug(
        "the same rows in another spelling are other rows where columns say little",
        ((INGEST_CHILD, "reader.field.spells for reader", "False for reader"),),
        (f"{T_SPELLED}::test_rows_that_say_little_have_one_budget_in_every_spelling",),
    ),
    Bug(
        "a warning that names a column is carried out on the model card",
        (("workers/generators/card.py", 'f"Warning: {escaped(warning)}"', 'f"Warning: {warning}"'),),
        (
            "tests/workers/test_certificate_warnings.py::test_names_in_warnings_and_forecasts_are_shown_and_not_carried_out",
        ),
    ),
    Bug(
        "a forecast of units of several rows has the noise of one row",
        (
            (
                "service/methods/marginals/noisy_counts.py",
                "event.quoted_noise_multiplier * shape.max_rows_per_unit",
                "event.quoted_noise_multiplier * 1",
            ),
        ),
        ("tests/service/methods/test_forecast.py::test_rows_of_one_unit_add_to_the_noise",),
    ),
    Bug(
        "a count of units with many rows has the noise of one row",
        ((GEOMETRIC, ".astype(np.int64), rows.most)", ".astype(np.int64), 1)"),),
        (T_ANSWERS, T_QUERIES),
    ),
    Bug(
        "a sum of units with many rows has the noise of one row",
        ((GEOMETRIC, "rows.most * max(abs(lowest), abs(highest))", "max(abs(lowest), abs(highest))"),),
        (f"{T_ANSWERS}::test_a_sum_moves_by_the_larger_end_for_each_row_of_a_unit",),
    ),
    Bug(
        "a sum has the noise of the width of its range, not of its larger end",
        ((GEOMETRIC, "rows.most * max(abs(lowest), abs(highest))", "rows.most * (highest - lowest) // 2"),),
        (f"{T_ANSWERS}::test_a_sum_moves_by_the_larger_end_for_each_row_of_a_unit",),
    ),
    Bug(
        "the sensitivity of a quantile without p",
        (
            (
                EXPONENTIAL,
                "losses = np.abs(WHOLE * below - ten_thousandths * int(used.sum()))\n    return PrivateLosses(losses.astype(np.int64), rows.most * max(ten_thousandths, WHOLE - ten_thousandths))",
                "losses = np.abs(WHOLE * below - ten_thousandths * int(used.sum()))\n    return PrivateLosses(losses.astype(np.int64), rows.most * WHOLE // 2)",
            ),
        ),
        (f"{T_ANSWERS}::test_losses_of_quantiles_move_by_their_sensitivity_at_most",),
    ),
    Bug(
        "every choice takes losses to be monotone",
        ((EXPONENTIAL, "factor = 1 if private.is_monotone else 2", "factor = 1"),),
        (f"{T_ANSWERS}::test_a_quantile_is_chosen_with_half_of_its_epsilon_for_each_loss",),
    ),
    Bug(
        "the noisy maximum of units with many rows scores as for one row",
        (
            (
                NOISY_MAXIMUM,
                "PrivateLosses(-counts, rows.most, is_monotone=True)",
                "PrivateLosses(-counts, 1, is_monotone=True)",
            ),
        ),
        (f"{T_ANSWERS}::test_the_most_frequent_cell_of_units_with_many_rows_is_chosen_more_at_random",),
    ),
    Bug(
        "the noisy maximum tells its value",
        (
            (
                QUERY_ANSWERS,
                '"interval": None, "behind_by_at_most": behind}',
                '"interval": None, "behind_by_at_most": behind, "count": -int(getattr(losses, "values")[place])}',
            ),
        ),
        (f"{T_QUERIES}::test_the_most_frequent_value_is_told_without_its_count",),
    ),
    Bug(
        "a threshold without its δ in the simple account",
        (("service/privacy/accounting.py", "    if failures > 0.0:\n", "    if failures > 1.0:\n"),),
        (T_FAILURES,),
    ),
    Bug(
        "a threshold without its δ in the Rényi account",
        (
            (
                FILTERS,
                "        divergence += charge\n",
                "        divergence += 0.0 * charge\n",
            ),
        ),
        (f"{T_FAILURES}::test_both_costs_hold_the_failures",),
    ),
    Bug(
        "failures take what divergences leave of δ on their path",
        (
            (FILTERS, "    converted = (1.0 - FAILURE_PART) * delta / 2.0\n", "    converted = delta / 2.0\n"),
            (FILTERS, "if taken <= converted * (1.0 + 1e-9) else 0.0", "if taken > 0.0 else 0.0"),
        ),
        (f"{T_FAILURES}::test_the_renyi_account_never_promises_more_delta_than_it_has",),
    ),
    Bug(
        "failures do not shift the loss of the way back",
        (("service/privacy/failures.py", "shifted = epsilon - loss_of_failures(self.failures)", "shifted = epsilon"),),
        (f"{T_FAILURES}::test_a_mechanism_that_fails_shifts_the_loss_of_the_way_back",),
    ),
    Bug(
        "the threshold of keys forgets that a unit may bring all its rows",
        ((KEY_THRESHOLD, "max(most + beyond / rate, 1.0 + (beyond + math.log(most)) / rate)", "1.0 + beyond / rate"),),
        (f"{T_ANSWERS}::test_a_unit_alone_passes_the_threshold_as_rarely_as_is_charged",),
    ),
    Bug(
        "keys are told above any positive count",
        (
            (
                KEY_THRESHOLD,
                "told = noisy >= threshold(epsilon=epsilon, failure_probability=failure_probability, most=rows.most)",
                "told = noisy >= 1",
            ),
        ),
        (T_ANSWERS, T_QUERIES),
    ),
    Bug(
        "smooth sensitivity with the formula of global sensitivity",
        ((SMOOTH_MEDIAN, "scale = 6.0 * smooth", "scale = 1.0 * smooth"),),
        (f"{T_ANSWERS}::test_a_median_is_released_with_cauchy_noise_of_six_times_its_smooth_sensitivity",),
    ),
    Bug(
        "local sensitivity instead of smooth",
        ((SMOOTH_MEDIAN, "np.exp(np.maximum(-beta * steps, _LEAST_EXPONENT))", "(steps == 0)"),),
        (T_ANSWERS,),
    ),
    Bug(
        "a sensitivity takes longer for a median in the middle",
        ((SMOOTH_MEDIAN, "for value in range(size):", "for value in range(int(np.sum(up_to <= middle)) + 1):"),),
        (f"{T_ANSWERS}::test_the_work_for_a_sensitivity_does_not_tell_where_the_median_is",),
    ),
    Bug(
        "geometric noise without zero drawn again",
        ((EXACT_GEOMETRIC, "again = negative & (sizes == 0)", "again = negative & (sizes < 0)"),),
        (T_EXACT_GEOMETRIC,),
    ),
    Bug(
        "the rate of geometric noise is rounded up",
        ((EXACT_GEOMETRIC, "math.ceil(scale * 2**shift)", "math.floor(scale * 2**shift)"),),
        (f"{T_EXACT_GEOMETRIC}::test_the_rate_is_never_above_what_is_paid_for_and_hardly_below",),
    ),
    Bug(
        "each question of a batch is given the whole price",
        ((QUERY_PRICE, "epsilon=share / noise_multiplier", "epsilon=1.0 / noise_multiplier"),),
        (f"{T_QUERIES}::test_weights_share_out_one_price",),
    ),
    Bug(
        "a staged file is shown to every key of its tenant",
        (
            (
                STAGING,
                "StagedUpload.key_id == principal.key_id, _is_young(context)",
                "StagedUpload.tenant_id == principal.tenant_id, _is_young(context)",
            ),
        ),
        (
            f"{T_WALK}::test_no_page_of_anybody_else_holds_a_cell_of_a_staged_file",
            f"{T_WALK}::test_nobody_else_sees_the_first_images_of_a_staged_file",
        ),
    ),
    Bug(
        "the preview of a staged file is shown to analysts",
        (
            (
                STAGING,
                "StagedUpload.key_id == principal.key_id, _is_young(context)",
                "StagedUpload.tenant_id == principal.tenant_id, _is_young(context)",
            ),
            (DOORS, 'visitor.principal.require("owner")', 'visitor.principal.require("reader")'),
        ),
        (
            f"{T_WALK}::test_no_page_of_anybody_else_holds_a_cell_of_a_staged_file",
            f"{T_WALK}::test_nobody_else_sees_the_first_images_of_a_staged_file",
            f"{T_WALK}::test_an_analyst_stages_nothing",
        ),
    ),
    Bug(
        "a draft is published without its owner's word",
        (
            ("service/pages/open_points.py", "    if unticked:\n", "    if False:\n"),
            (DRAFTS, "if marked or is_marked(document):", "if False:"),
        ),
        (f"{T_WALK}::test_what_was_read_from_the_rows_is_published_only_where_its_owner_says_that_it_is_public",),
    ),
    Bug(
        "what a draft read of a column stays declared beside what is bought of it",
        (("service/pages/purchases.py", "            constraints.pop(word, None)\n", "            continue\n"),),
        (f"{T_BUYING_PAGES}::test_what_the_draft_read_of_a_column_that_is_bought_is_not_declared",),
    ),
    Bug(
        "a column that is to be bought is published unticked, with what was read of it",
        (
            (
                "service/pages/purchases.py",
                'return is_bought(field) and not field.get("constraints") and',
                "return is_bought(field) and",
            ),
        ),
        (f"{T_BUYING_PAGES}::test_what_is_written_of_a_column_that_is_bought_is_still_ticked",),
    ),
    Bug(
        "what was read of a column comes back as public once it is not bought any more",
        (("service/pages/declaring.py", " and not comes_back)", ")"),),
        (f"{T_BUYING_PAGES}::test_what_was_read_comes_back_unticked",),
    ),
    Bug(
        "rows of one id are taken for so many people without a word",
        (
            (
                "service/pages/open_points.py",
                'return _raised("unit", partial(require_apart, said, draft))',
                "return []",
            ),
        ),
        (f"{T_REPEATING_IDS}::test_one_row_each_is_not_believed_where_an_id_repeats",),
    ),
    Bug(
        "an id of too many different values to tell passes for one that does not repeat",
        (
            (
                "service/intake/table/drafting/decide.py",
                "return None if seen.texts is None else",
                "return False if seen.texts is None else",
            ),
        ),
        (
            f"{T_REPEATING_IDS}::test_what_has_too_many_different_values_to_tell_is_asked_too",
            "tests/service/intake/table/test_draft_findings.py::test_of_too_many_different_values_it_is_not_known_whether_one_repeats",
        ),
    ),
    Bug(
        "a draft lists comments that hold phone numbers as categories",
        ((DECIDE, "if personal_looks.INSIDE.search(text)]:", "if not text]:"),),
        (
            "tests/service/intake/table/test_draft_findings.py::test_a_comment_that_holds_a_number_or_an_address_is_not_listed",
        ),
    ),
    Bug(
        "a request with another δ is answered with the first release",
        (
            (
                "service/releases/publish.py",
                "(dataset.epsilon, dataset.delta) != (budget.epsilon, choose_delta(budget.delta, dataset.units))",
                "dataset.epsilon != budget.epsilon",
            ),
        ),
        (f"{T_SAME_ROWS}::test_publish_sent_again_with_its_key_answers_with_the_release_of_the_first_time",),
    ),
    Bug(
        "a publish goes on with a dataset that another request made",
        (
            (
                "service/releases/publish.py",
                "is_its_own = dataset.idempotency_key == idempotency_key",
                "is_its_own = True",
            ),
        ),
        (f"{T_SAME_ROWS}::test_publish_sent_again_goes_on_where_the_first_request_stopped",),
    ),
    Bug(
        "a publish that is sent again orders something else from the dataset of the first time",
        (
            (
                "service/releases/publish.py",
                "if is_its_own and dataset.order_digest not in {None, digest}:",
                "if False:",
            ),
        ),
        (f"{T_SAME_ROWS}::test_publish_sent_again_goes_on_where_the_first_request_stopped",),
    ),
    Bug(
        "a publish makes its dataset before it knows that another order may be open",
        (
            (
                "service/releases/service.py",
                'if of_key >= settings.open_orders_per_key:\n        _refuse_when_full("key_full", settings)',
                "if False:\n        pass",
            ),
        ),
        (f"{T_SAME_ROWS}::test_publish_over_the_limit_of_open_orders_makes_no_dataset",),
    ),
    Bug(
        "a publish makes its dataset before it knows that the budget has room",
        ((DATASETS, "            to_be_ordered.check(table.units, budget)\n", "            pass\n"),),
        (f"{T_SAME_ROWS}::test_publish_of_an_order_that_would_be_refused_makes_no_dataset",),
    ),
    Bug(
        "rows are declared public without a word on what follows",
        (("service/pages/publishing.py", "if said.get(PUBLIC) and not said.get(KNOWN_PUBLIC):", "if False:"),),
        (f"{T_PUBLIC_PAGES}::test_rows_are_public_by_two_ticks_at_the_upload_alone",),
    ),
    # -- reports and held-out units
    Bug(
        "a report computed on the training rows without charge",
        (
            (
                "workers/reports/charged.py",
                "noise_multiplier = plan.take_gaussian(purpose_of(order))",
                "noise_multiplier = 1.0",
            ),
        ),
        (f"{T_CHARGED_REPORT}::test_without_its_event_no_row_is_read",),
    ),
    Bug(
        "the figures of a charged report have no noise",
        (
            (
                "workers/reports/charged.py",
                "noisy = release_counts(private, noise_stds=stds, noise_multiplier=noise_multiplier, randomness=randomness)",
                "noisy = private.values",
            ),
        ),
        (f"{T_CHARGED_REPORT}::test_every_figure_has_the_noise_of_the_event",),
    ),
    Bug(
        "attacks of the owner's report take rows that the release was made from for held-out ones",
        (
            (
                "workers/reports/owner.py",
                "rows(made.split.units(made.units, held_out=side)) for side in (False, True)",
                "rows(made.split.units(made.units, held_out=side)) for side in (False, False)",
            ),
        ),
        (f"{T_ATTACKS}::test_likelihood_tells_the_rows_of_a_copier_and_not_those_of_an_honest_generator",),
    ),
    Bug(
        "an attack's threshold is counted on the rows that it was chosen on",
        (
            (
                "workers/reports/attacks.py",
                "hits, alarms = int((counted >= threshold).sum()), int((other_counted >= threshold).sum())",
                "hits, alarms = int((chosen_on >= threshold).sum()), int((other_chosen_on >= threshold).sum())",
            ),
        ),
        (f"{T_ATTACKS}::test_an_advantage_is_counted_on_rows_that_did_not_choose_the_threshold",),
    ),
    Bug(
        "a report is measured, and is not on the price list",
        (
            (
                "service/methods/report.py",
                "(*own(noise_multiplier), GaussianEvent(purpose_of(order), noise))",
                "own(noise_multiplier)",
            ),
        ),
        ("tests/service/methods/test_report_event.py::test_it_is_the_last_event_and_the_whole_costs_what_was_ordered",),
    ),
    Bug(
        "what is made reads the held-out units",
        ((RUN, "training_rows(self.release.order, self.release.id, stored)", "stored"),),
        (f"{T_HELD_OUT_API}::test_what_is_made_and_what_is_tested_are_of_different_units",),
    ),
    Bug(
        "the tables of a report count held-out units at the price of one side",
        (
            (
                HELD_OUT,
                "shuffled[:count] if held_out else shuffled[count:]",
                "shuffled[:count] if held_out else shuffled",
            ),
        ),
        (f"{T_HELD_OUT_CONTRACT}::test_a_unit_moves_the_tables_or_the_answers",),
    ),
    Bug(
        "the accuracy on held-out units has no noise",
        (
            (
                ACCURACY,
                "release_counts(private, noise_stds=[noise_std], noise_multiplier=noise_multiplier, randomness=randomness)",
                "private.values",
            ),
        ),
        (f"{T_ACCURACY}::test_both_counts_have_the_noise_of_the_event",),
    ),
    Bug(
        "all rows of a held-out unit count",
        ((ERRORS, "    used = rows.used(known)\n", "    used = known\n"),),
        (f"{T_HELD_OUT_CONTRACT}::test_a_unit_moves_the_tables_or_the_answers",),
    ),
    Bug(
        "another attempt holds out other units",
        (
            (HELD_OUT, "hashlib.sha256(COINS + release_id.bytes).digest()", "os.urandom(16)"),
            (HELD_OUT, "import hashlib\n", "import os\n"),
        ),
        ("tests/workers/test_held_out.py::test_another_attempt_has_the_same_sides_and_another_release_has_others",),
    ),
    Bug(
        "the owner's report is read by an analyst",
        (
            ("service/releases/report_endpoints.py", "principal: Owner", "principal: Reader"),
            (
                "service/releases/reports.py",
                'it is looked at again here."""\n    principal.require("owner")\n',
                'looked at."""\n',
            ),
        ),
        ("tests/service/releases/test_owner_reports.py::test_no_other_scope_is_let_in",),
    ),
    Bug(
        "the page shows the owner's report to analysts",
        (
            (
                "service/pages/reports.py",
                "def read_owner_report(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Owner)",
                "def read_owner_report(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Reader)",
            ),
            (
                "service/releases/reports.py",
                'it is looked at again here."""\n    principal.require("owner")\n',
                'looked at."""\n',
            ),
        ),
        (f"{T_REPORT_PAGES}::test_no_one_else_sees_any_of_it",),
    ),
    Bug(
        "an analyst's page says that there is an owner's report",
        (("service/pages/templates/release.html", "{% if is_owner and not is_image %}", "{% if not is_image %}"),),
        (f"{T_REPORT_PAGES}::test_no_one_else_sees_any_of_it",),
    ),
    Bug(
        "an ID token is taken whichever sign-in it was made for",
        (
            (
                "service/auth/single_sign_on.py",
                '{"nonce": nonce, "client_id": self.client_id}',
                '{"client_id": self.client_id}',
            ),
        ),
        (f"{T_SIGN_ON}::test_a_token_that_is_not_for_this_sign_in_is_refused",),
    ),
    Bug(
        "an ID token is taken whichever service it was made for",
        (("service/auth/single_sign_on.py", '"value": self.client_id}', '"value": None}'),),
        (f"{T_SIGN_ON}::test_a_token_that_is_not_for_this_sign_in_is_refused",),
    ),
    Bug(
        "an answer of the sign-in provider works as often as the provider says",
        (
            (
                "service/pages/single_sign_on.py",
                "key=sign_on.key_text(context.secrets, ticket),",
                "key=None,",
            ),
        ),
        (f"{T_SIGN_ON}::test_an_answer_works_once",),
    ),
    Bug(
        "a page shows everybody where the rows lie",
        (
            (
                "service/pages/templates/dataset.html",
                "<h1>{{ dataset.name }}</h1>",
                "<h1 title='{{ dataset.storage_key }}'>{{ dataset.name }}</h1>",
            ),
        ),
        ("tests/privacy/test_pages_visibility.py::test_no_page_of_another_holds_what_is_the_owners",),
    ),
    # -- choosing among orders
    Bug(
        "parts of a choice overlap",
        ((CHOOSE_PARTS, "shuffled[part * size : (part + 1) * size]", "shuffled[part * size // 2 :][:size]"),),
        (f"{T_CHOOSING}::test_no_unit_is_in_two_parts_and_all_parts_have_the_size_that_is_priced",),
    ),
    Bug(
        "a resumed choice splits the units anew",
        ((BY_PARTS, 'int(values["seed"])', "self.randomness.bits(SEED_BITS)"),),
        (f"{T_CHOOSING}::test_a_resumed_run_keeps_parts_and_tries_no_candidate_again",),
    ),
    Bug(
        "candidates are tried on all units",
        ((BY_PARTS, "self.part(place), self.quiet", "self.source, self.quiet"),),
        (f"{T_CHOOSING}::test_each_candidate_runs_all_of_its_list_on_its_own_part",),
    ),
    Bug(
        "a choice among candidates is not paid",
        ((BY_PARTS, "epsilon=event.epsilon", "epsilon=1000.0"),),
        (f"{T_CHOOSING}::test_the_choice_has_the_epsilon_of_its_event",),
    ),
    Bug(
        "the choice is left out of the price",
        (
            (
                CHOOSE_PRICE,
                "(*(trial(factor) for trial in trials), (choice,))",
                "tuple(trial(factor) for trial in trials)",
            ),
        ),
        (f"{T_CHOOSE_PRICE}::test_the_choice_is_part_of_the_price",),
    ),
    Bug(
        "errors of a unit with many rows count as one",
        ((ERRORS, "rows.most, is_monotone=True", "1, is_monotone=True"),),
        (f"{T_CHOOSING}::test_zeroing_out_a_unit_lowers_every_loss_by_its_rows_at_most",),
    ),
    Bug(
        "a selection publishes the best of runs that were only made to fill time",
        ((BY_REPEATING, "number < self.runs and (self.best", "(self.best"),),
        (f"{T_CHOOSING}::test_the_best_of_the_runs_that_count_is_published_and_padding_is_thrown_away",),
    ),
    Bug(
        "one of several lists is priced as if public coins had chosen it",
        (
            (
                ONE_OF,
                "for each in self.lists), follows_outputs=True)",
                "for each in self.lists), follows_outputs=False)",
            ),
        ),
        (f"{T_CHOOSE_PRICE}::test_which_list_runs_may_follow_what_was_released",),
    ),
    # -- an autoencoder, and votes of teachers
    Bug(
        "only the decoder of an autoencoder gets noise, since only the decoder is published",
        (
            (
                CODED,
                "for tensor, total in zip(self.autoencoder_tensors, noisy, strict=True):",
                "first = 4\n        noisy = (*clipped.sum.values[:first], *noisy[first:])\n        for tensor, total in zip(self.autoencoder_tensors, noisy, strict=True):",
            ),
        ),
        (
            f"{T_CODED}::test_every_tensor_of_encoder_and_decoder_gets_the_noise_that_is_charged",
            f"{T_CODED}::test_given_the_same_outputs_a_unit_moves_each_sum_by_its_sensitivity_and_nothing_else",
        ),
    ),
    Bug(
        "a random part of a label goes through a trained decoder, so that a relation of chance is there from the start",
        ((CODERS, "nn.init.zeros_(self.condition.weight)", "nn.init.normal_(self.condition.weight)"),),
        (f"{T_CODED}::test_a_label_says_nothing_of_a_row_until_the_critic_does",),
    ),
    Bug(
        "an order that buys relevance is taken and charged, and its list has no event for it",
        ((RDPCGAN_PRICE, "        *relevance,\n", ""),),
        (f"{T_RUN_CONTRACT}::test_a_knob_that_buys_is_paid_in_every_method_that_has_it",),
    ),
    Bug(
        "the steps of an autoencoder are taken for part of the critic's",
        ((RDPCGAN_PRICE, "None, order.autoencoder.steps)", "None, 1)"),),
        (f"{T_RDPCGAN_PRICE}::test_both_phases_are_on_the_list_with_their_parts_of_the_precision",),
    ),
    Bug(
        "two teachers share the units of a part",
        ((TEACHERS, "part=part)", "part=part // 2)"),),
        (
            f"{T_TEACHERS}::test_no_unit_has_two_teachers",
            f"{T_TEACHERS}::test_given_the_same_outputs_a_unit_moves_the_votes_of_its_own_teacher_and_nothing_else",
        ),
    ),
    Bug(
        "a teacher votes for what is above the median of all teachers' scores",
        ((TEACHERS, "scores.median(dim=1, keepdim=True)[0]", "scores.median()"),),
        (
            f"{T_TEACHERS}::test_given_the_same_outputs_a_unit_moves_the_votes_of_its_own_teacher_and_nothing_else",
            f"{T_TEACHERS}::test_a_teacher_votes_for_what_it_takes_for_real_or_for_half_of_the_batch",
        ),
    ),
    Bug(
        "votes on a batch get the noise of one vote",
        ((VOTES, "math.sqrt(votes.shape[1])", "math.sqrt(1.0)"),),
        (f"{T_VOTES}::test_every_vote_of_three_teachers_and_every_other_vote_of_one_of_them",),
    ),
    Bug(
        "teachers are asked before the event of their votes is taken",
        (
            (
                PATEGAN,
                "        noise = self.plan.take_sampled_step(",
                "        votes = self._teachers().votes(records)\n        noise = self.plan.take_sampled_step(",
            ),
            (PATEGAN, "vote_counts(self._teachers().votes(records))", "vote_counts(votes)"),
        ),
        (f"{T_EVENT_FIRST}::test_rows_are_read_for_an_event_that_was_taken",),
    ),
    Bug(
        "a batch of votes is released twice for one event",
        (
            (
                PATEGAN,
                "        (noisy,) = release(\n            vote_counts(",
                "        for _ in range(2):\n          (noisy,) = release(\n            vote_counts(",
            ),
        ),
        (f"{T_TEACHERS}::test_each_batch_of_votes_is_an_event_of_the_list_with_its_noise",),
    ),
    Bug(
        "a price that follows from how far teachers agree is shown",
        (
            (
                PATEGAN,
                'engine="none",',
                'engine="none",\n            choice={"epsilon": float(self._teachers().last.detach().abs().max())},',
            ),
        ),
        (f"{T_TEACHERS}::test_what_is_published_and_told_follows_from_noisy_votes_alone",),
    ),
    Bug(
        "a run that goes on gives units to other teachers",
        ((PATEGAN, 'int(values["seed"])', "self.seed"),),
        (f"{T_TEACHERS}::test_a_run_that_goes_on_has_the_same_parts_and_no_teacher_is_kept",),
    ),
    Bug(
        "a checkpoint keeps what teachers learned",
        (
            (
                PATEGAN,
                '"voted_on": self.voted_on,',
                '"voted_on": self.voted_on, "teachers": self._teachers().first,',
            ),
        ),
        (f"{T_TEACHERS}::test_a_run_that_goes_on_has_the_same_parts_and_no_teacher_is_kept",),
    ),
    # -- reports from devices
    Bug(
        "the permanent response of RAPPOR is drawn anew for each report",
        (("imprimatur/local/rappor.py", "PermanentCoins(self.secret,", "PermanentCoins(new_secret(),"),),
        (f"{T_RAPPOR}::test_one_value_has_one_permanent_response_for_ever",),
    ),
    Bug(
        "reports of RAPPOR are made of the filter instead of the permanent response",
        (("imprimatur/local/rappor.py", "coins.toss(half) != (place in own)", "(place in own)"),),
        (f"{T_RAPPOR}::test_permanent_bits_turn_as_often_as_f_says",),
    ),
    Bug(
        "permanent coins of RAPPOR are the same for every setting",
        (("imprimatur/local/rappor.py", "{self.bits} {self.hashes} {half} ", ""),),
        (f"{T_RAPPOR}::test_a_permanent_response_under_other_settings_is_of_other_coins",),
    ),
    Bug(
        "rounding makes the ε of OUE larger than what was asked for",
        (
            (
                "imprimatur/local/oue.py",
                "max(at_least(1 / (Fraction(below) + 1)), at_least(1.0 / (math.exp(epsilon) + 1.0)))",
                "at_least(1.0 / (math.exp(epsilon) + 1.0))",
            ),
        ),
        (
            "tests/imprimatur/local/test_local_oue.py::test_rounding_never_makes_epsilon_larger_and_changes_no_coins_without_need",
        ),
    ),
    Bug(
        "memoised coins of OUE are the same for every setting",
        (("imprimatur/local/oue.py", "{self.flip_part} {digest_of(self.values)}", "permanent"),),
        ("tests/imprimatur/local/test_local_oue.py::test_a_report_under_other_settings_is_of_other_coins",),
    ),
    Bug(
        "memoised coins of OUE are the same for every question",
        (("imprimatur/local/oue.py", "{question and ' '}{question}", ""),),
        ("tests/imprimatur/local/test_local_oue.py::test_equal_answers_to_two_questions_are_not_equal_reports",),
    ),
    Bug(
        "permanent coins of RAPPOR are the same for every question",
        (("imprimatur/local/rappor.py", "{half} {cohort}{self._of_question}", "{half} {cohort}"),),
        (f"{T_RAPPOR}::test_a_permanent_response_under_other_settings_is_of_other_coins",),
    ),
    Bug(
        "a device of RAPPOR is in another cohort each time that it starts",
        (
            (
                "imprimatur/local/rappor.py",
                "number_below(self.cohorts, secret,",
                "number_below(self.cohorts, new_secret(),",
            ),
        ),
        (f"{T_RAPPOR}::test_a_device_that_keeps_its_secret_stays_in_its_cohort",),
    ),
    Bug(
        "a memoised report is drawn anew",
        (("imprimatur/local/oue.py", ".toss if self._memoised else fresh", ".toss if not self._memoised else fresh"),),
        (
            "tests/imprimatur/local/test_local_oue.py::test_the_same_value_is_the_same_report_and_another_device_has_another",
        ),
    ),
    # -- single images
    Bug(
        "coefficients have the noise of one pixel",
        ((SINGLE_IMAGES, "return WHITE**2 * self.rows * self.columns * self.channels", "return WHITE**2"),),
        (f"{T_SINGLE_IMAGES}::test_a_unit_moves_coefficients_by_no_more_than_is_declared",),
    ),
    Bug(
        "coefficients have the noise of this image's own largest column",
        (
            (
                SINGLE_IMAGES,
                "(float(root_above(squared_l2(down, across, unit))),)",
                "(float(np.abs(coefficients).sum(axis=1).max(initial=1)),)",
            ),
        ),
        (
            "tests/privacy/test_audit.py::test_outputs_of_every_kind_of_release_are_attacked_where_two_datasets_differ_most",
        ),
    ),
    Bug(
        "singular values have the noise of one number",
        ((SINGLE_IMAGES, "_scaled(rank * squared_l2(down, across, unit))", "_scaled(squared_l2(down, across, unit))"),),
        (f"{T_SINGLE_IMAGES}::test_a_unit_moves_singular_values_and_losses_by_no_more_than_is_declared",),
    ),
    Bug(
        "the size of single images is chosen at a price of nothing",
        (
            (
                "workers/methods/image_release/run.py",
                "choose(losses, epsilon=event.epsilon,",
                "choose(losses, epsilon=1000.0,",
            ),
        ),
        (f"{T_IMAGE_RELEASE}::test_the_choice_has_the_epsilon_of_its_event",),
    ),
    Bug(
        "noisy copies of private images are called rows of which none is about a person",
        (
            (
                "imprimatur/explanation.py",
                '    if certificate["method"] in COPIES_IMAGES:\n        return COPIES\n',
                "",
            ),
        ),
        ("tests/imprimatur/test_explanation.py::test_noisy_copies_of_images_are_called_so",),
    ),
    Bug(
        "an order of single images is charged whose noise no sampler can draw",
        (
            (
                "service/methods/image_release/resolve.py",
                "    if drawable <= SMALLEST_EPSILON:\n",
                "    if True:\n",
            ),
        ),
        (
            "tests/workers/methods/image_release/test_noise_can_be_drawn.py::test_the_least_epsilon_has_noise_that_can_be_drawn",
        ),
    ),
    Bug(
        "methods of whole images take units that are parts",
        (("service/methods/catalogue.py", "and not method.takes_parts_of_images:", "and False:"),),
        (f"{T_IMAGE_ORDERS}::test_methods_of_whole_images_are_refused_where_units_are_parts",),
    ),
    Bug(
        "an order names another unit than the declared one",
        (("service/methods/image_release/resolve.py", "if order.unit not in {None, declared}:", "if False:"),),
        (f"{T_IMAGE_ORDERS}::test_another_unit_than_the_budgets_is_refused",),
    ),
    Bug(
        "a certificate repeats the ε that a stored price states, whatever its list costs",
        (("workers/fitting.py", "epsilon >= share * budget.epsilon", "epsilon >= 0.0"),),
        ("tests/workers/test_fitting.py::test_a_price_that_states_less_than_it_costs_is_found",),
    ),
    Bug(
        "a worker takes a stored order's word for the unit",
        (
            (
                "workers/fitting.py",
                'return None if method.has_declared_unit(order, schema) else "underpaid"',
                "return None",
            ),
        ),
        ("tests/workers/test_fitting.py",),
    ),
    Bug(
        "the class of a single image is released",
        (("workers/generators/released.py", 'schema.model_copy(update={"classes": None})', "schema"),),
        (f"{T_IMAGE_RELEASE}::test_the_bundle_draws_the_released_images_and_names_no_class",),
    ),
    Bug(
        "bounds are those of the rows, beside a purchase that is charged",
        (
            (
                BUYING,
                "outward = choose(losses, epsilon=epsilon, randomness=self._randomness)",
                "outward = int(losses.values.argmin())",
            ),
        ),
        (f"{T_BUYING}::test_bounds_are_drawn_and_not_read_from_the_rows",),
    ),
    Bug(
        "a worker reads the rows of a dataset whose declaration was not bought",
        (("workers/fitting.py", "if is_open != method.buys_declaration:", "if False:"),),
        (f"{T_BOUGHT}::test_a_worker_reads_no_row_of_what_is_not_declared",),
    ),
    Bug(
        "rows are ordered before the declaration is bought",
        (("service/methods/catalogue.py", "        require_closed(schema)\n", "        pass\n"),),
        (f"{T_BOUGHT}::test_nothing_is_known_of_an_open_column_before_it_is_bought",),
    ),
    Bug(
        "categories are bought without their event",
        (
            (
                BUYING,
                "event = self._plan.take(ThresholdEvent, CATEGORIES)",
                "event = ThresholdEvent(CATEGORIES, 1.0, failure_probability=1e-8)",
            ),
        ),
        (f"{T_RUN_CONTRACT}::test_events_taken_are_events_priced_and_the_bundle_is_drawn_from[declaration-table]",),
    ),
    Bug(
        "each column of categories that is bought has the whole part of δ",
        ((BUYING_PRICE, "DELTA_SHARE * delta / max(1, of_categories)", "DELTA_SHARE * delta"),),
        (f"{T_BUYING}::test_every_purchase_is_on_the_price_list_and_a_failure_is_a_part_of_delta",),
    ),
    Bug(
        "categories are told above a threshold that no δ pays",
        ((BUYING, "failure_probability=event.failure_probability,", "failure_probability=0.5,"),),
        (f"{T_BUYING}::test_where_nothing_is_common_nothing_is_told",),
    ),
    Bug(
        "a bound forgets that a unit may have many rows",
        (
            (
                EXPONENTIAL,
                "losses = np.maximum(0, np.maximum(WHOLE * beyond - wanted, wanted - WHOLE * before))\n    return PrivateLosses(losses.astype(np.int64), rows.most * max(",
                "losses = np.maximum(0, np.maximum(WHOLE * beyond - wanted, wanted - WHOLE * before))\n    return PrivateLosses(losses.astype(np.int64), 1 * max(",
            ),
        ),
        (f"{T_ANSWERS}::test_losses_of_bounds_move_by_their_sensitivity_at_most",),
    ),
    Bug(
        "bought categories are in the order of the rows",
        (
            (
                OPEN_VALUES,
                "texts = sorted(whole.drop_nulls().unique().to_list())",
                "texts = whole.drop_nulls().unique(maintain_order=True).to_list()",
            ),
        ),
        (f"{T_BUYING}::test_open_columns_are_read_as_they_are_stored_and_texts_in_an_order_of_their_own",),
    ),
    Bug(
        "what an attempt has bought is bought again by the next one",
        (
            (
                "workers/methods/declaration/run.py",
                'self.bought = checkpoint.values["bought"]',
                "self.plan = type(self.plan)(self.plan._events)\n        self.measure()",
            ),
        ),
        (f"{T_BOUGHT}::test_an_attempt_that_dies_after_the_purchase_is_followed_by_one_with_the_same_answer",),
    ),
    # -- knobs of the private step
    Bug(
        "the mask of sparse updates is of the batch's raw gradients",
        (
            (
                STEP_MAPS,
                "        return [g.flatten(1).index_select(1",
                (
                    "        sizes = [g.flatten(1).abs().sum(dim=0) for g in gradients]\n"
                    "        self.places = [torch.topk(s, c).indices for s, c in zip(sizes, self.counts, strict=True)]\n"
                    "        return [g.flatten(1).index_select(1"
                ),
            ),
        ),
        (f"{T_STEP_KNOBS}::test_a_map_is_linear_unit_by_unit_and_learns_nothing_from_what_was_not_released",),
    ),
    Bug(
        "noise before clipping is counted as privacy",
        (
            (
                IDPGAN,
                "noise_multiplier=noise.gradient_noise_multiplier,",
                "noise_multiplier=(noise.gradient_noise_multiplier**2 - self.step.knobs.pre_clip_noise**2) ** 0.5,",
            ),
        ),
        (f"{T_STEP_KNOBS}::test_a_unit_moves_what_is_released_by_its_sensitivity_at_most",),
    ),
    Bug(
        "the scale of a step is of raw gradients",
        (
            (
                STEP_MAPS,
                "        return [gradient / unit for",
                "        self.learn([gradient.mean(dim=0) for gradient in gradients])\n        return [gradient / unit for",
            ),
        ),
        (f"{T_STEP_KNOBS}::test_a_map_is_linear_unit_by_unit_and_learns_nothing_from_what_was_not_released",),
    ),
    Bug(
        "relevance of private rows is read free",
        ((IDPGAN, "noise_multiplier = self.plan.take_gaussian(RELEVANCE)", "noise_multiplier = 1.0"),),
        (f"{T_STEP_KNOBS}::test_bought_relevance_is_charged_before_it_is_read",),
    ),
    Bug(
        "bought relevance is not in the price",
        ((GAN_PRICE, "    events += relevance\n", ""),),
        (f"{T_STEP_ORDERS}::test_bought_relevance_is_one_event_more_within_the_same_epsilon",),
    ),
    Bug(
        "the basis of a gradient subspace is of the batch's raw gradients",
        (
            (
                STEP_SUBSPACE,
                "        blocks, residuals = list(gradients), []\n",
                (
                    "        blocks, residuals = list(gradients), []\n"
                    "        for place in self.bases:\n"
                    "            self.bases[place] = self._basis(gradients[place].mean(dim=0), self.bases[place].T.double())\n"
                ),
            ),
        ),
        (f"{T_STEP_KNOBS}::test_a_map_is_linear_unit_by_unit_and_learns_nothing_from_what_was_not_released",),
    ),
    Bug(
        "a client takes the service of any user whose folder lies above",
        ((RUNNING, "getuid is not None and folder.stat().st_uid == getuid()", "folder.exists()"),),
        (f"{T_RUNNING}::test_a_service_of_another_user_is_not_taken",),
    ),
    Bug(
        "the key of the environment goes to every address",
        ((RUNNING, "return url, api_key\n", 'return url, api_key or os.environ.get("IMPRIMATUR_API_KEY")\n'),),
        (f"{T_RUNNING}::test_the_key_of_the_environment_goes_to_no_other_address",),
    ),
)
