"""Coordinate descent on a quadratic with an L1 part."""

from unless.kernels.compiling import borrowed, compiled


@compiled
def descend(matrix, slope, point, l1, max_sweeps, goal):
    """Minimise slope (z - point) + (z - point) matrix (z - point) / 2 + l1 |z| over z, in place.

    `point` becomes z and `slope` the slope there. Sweeps over what is not zero until no coordinate's slope
    moves by more than `goal`, then over everything; returns whether that moved none either.
    """
    matrix, slope, point = borrowed(matrix), borrowed(slope), borrowed(point)
    everything = True
    for _ in range(max_sweeps):
        most = 0.0
        for k in range(point.shape[0]):
            curvature = matrix[k, k]
            if curvature <= 0.0 or not (everything or point[k] != 0.0):
                continue
            wanted = point[k] * curvature - slope[k]
            if wanted > l1:
                new = (wanted - l1) / curvature
            elif wanted < -l1:
                new = (wanted + l1) / curvature
            else:
                new = 0.0
            step = new - point[k]
            if step != 0.0:
                point[k] = new
                most = max(most, abs(step) * curvature)
                for i in range(point.shape[0]):
                    slope[i] += step * matrix[k, i]
        if most <= goal:
            if everything:
                return True
            everything = True
        else:
            everything = False
    return False
