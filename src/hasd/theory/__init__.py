"""Every bound of the paper and ours, as plain functions of scalars (L, R, G, T, d, p, eps, mu, ...).

"The paper" is "Faster Acceleration for Steepest Descent" (Bai & Bullins, COLT 2025).  Each docstring begins with the
inequality and says where it comes from ("ours" means that it is not in the paper).  If the form that the paper prints
is wrong or loose, the docstring gives the right one.  Argument names mean the same everywhere; a value outside the
range of its symbol raises ValueError.

L           smoothness of f in l_p; mu is its strong convexity in l_2
R           ||x_0 - x*||_2, the distance from the start to a minimiser
r, G        the gain ||g||_{p*}/||g||_2 >= 1 of one gradient g, where p* is dual to p; its mean over the run
A_t, psi_t  the sum of the weights of t linear lower bounds on f; their weighted sum plus ||x - x_0||_2^2/2
v_t, psi*   the minimiser of psi_t and its minimum; the methods keep A_t f(x_t) <= psi*_t
rho         what the search for the coupling point y uses in place of 1/r^2
s_p(g)      the steepest-descent map of l_p

published   Algorithm 1 as published: progress, growth, the main bound, distances, the search
extensions  restarts and the norm of the gradient
tight       the tight form, strong convexity inside the cuts, the certificate
rivals      gradient and steepest descent, AGD, linear coupling, estimate sequences, the lower bound
lp_hessian  the Hessian of ||z||_p^2

>>> run = dict(L=1.0, R=1.0, G=1.0, T=10)
>>> main_bound(**run, constant=MAIN_PAPER), main_bound(**run), tight_bound(**run)
(3.24, 0.72, 0.02)
"""

from .extensions import (
    GRADIENT,
    GRADIENT_BEST,
    GRADIENT_BEST_PAPER,
    GRADIENT_PAPER,
    RESTART,
    RESTART_PAPER,
    gradient_norm_bound,
    gradient_norm_gap,
    gradient_norm_iterations,
    gradient_norm_iterations_best,
    gradient_norm_weight,
    gradient_norm_weight_sum,
    restart_count,
    restart_factor,
    restart_period,
    restart_weight,
)
from .lp_hessian import (
    lp_hessian_norm_bound,
    lp_hessian_norm_bound_as_printed,
    lp_hessian_smoothness_range,
    lp_squared_hessian,
    lp_squared_hessian_minorant,
)
from .published import (
    DISTANCE,
    DISTANCE_CORRECTED,
    GROWTH,
    GROWTH_PAPER,
    MAIN,
    MAIN_LEMMA3,
    MAIN_PAPER,
    PROGRESS,
    certificate_gap,
    coupling_distance_bound,
    distance_bound,
    distance_bound_as_printed,
    distance_bound_from_weight,
    gain_limit,
    main_bound,
    main_iterations,
    progress_from_gradient,
    progress_from_step,
    search_diameter,
    search_diameter_as_printed,
    search_trials_bound,
    slack_from_gradient,
    slack_from_step,
    slack_limit,
    softmax_gain,
    weight_bound,
)
from .rivals import (
    accelerated_gradient_bound,
    accelerated_gradient_strong_bound,
    estimate_sequence_bound,
    gradient_descent_bound,
    gradient_descent_strong_bound,
    linear_coupling_bound,
    linear_coupling_weight,
    lower_bound_order,
    nemirovskii_order,
    steepest_descent_bound,
    steepest_descent_strong_bound,
)
from .tight import (
    certificate_lower,
    descent,
    strong_bound,
    strong_gap_from_gradient,
    strong_growth_factor,
    strong_weight_bound,
    tight_bound,
    tight_gradient_norm_bound,
    tight_gradient_norm_iterations,
    tight_gradient_norm_iterations_best,
    tight_iterations,
    tight_restart_period,
    tight_weight_bound,
)

__all__ = [
    "DISTANCE",
    "DISTANCE_CORRECTED",
    "GRADIENT",
    "GRADIENT_BEST",
    "GRADIENT_BEST_PAPER",
    "GRADIENT_PAPER",
    "GROWTH",
    "GROWTH_PAPER",
    "MAIN",
    "MAIN_LEMMA3",
    "MAIN_PAPER",
    "PROGRESS",
    "RESTART",
    "RESTART_PAPER",
    "accelerated_gradient_bound",
    "accelerated_gradient_strong_bound",
    "certificate_gap",
    "certificate_lower",
    "coupling_distance_bound",
    "descent",
    "distance_bound",
    "distance_bound_as_printed",
    "distance_bound_from_weight",
    "estimate_sequence_bound",
    "gain_limit",
    "gradient_descent_bound",
    "gradient_descent_strong_bound",
    "gradient_norm_bound",
    "gradient_norm_gap",
    "gradient_norm_iterations",
    "gradient_norm_iterations_best",
    "gradient_norm_weight",
    "gradient_norm_weight_sum",
    "linear_coupling_bound",
    "linear_coupling_weight",
    "lower_bound_order",
    "lp_hessian_norm_bound",
    "lp_hessian_norm_bound_as_printed",
    "lp_hessian_smoothness_range",
    "lp_squared_hessian",
    "lp_squared_hessian_minorant",
    "main_bound",
    "main_iterations",
    "nemirovskii_order",
    "progress_from_gradient",
    "progress_from_step",
    "restart_count",
    "restart_factor",
    "restart_period",
    "restart_weight",
    "search_diameter",
    "search_diameter_as_printed",
    "search_trials_bound",
    "slack_from_gradient",
    "slack_from_step",
    "slack_limit",
    "softmax_gain",
    "steepest_descent_bound",
    "steepest_descent_strong_bound",
    "strong_bound",
    "strong_gap_from_gradient",
    "strong_growth_factor",
    "strong_weight_bound",
    "tight_bound",
    "tight_gradient_norm_bound",
    "tight_gradient_norm_iterations",
    "tight_gradient_norm_iterations_best",
    "tight_iterations",
    "tight_restart_period",
    "tight_weight_bound",
    "weight_bound",
]
